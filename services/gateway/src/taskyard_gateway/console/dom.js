// The view library: Preact with tagged templates.
import { h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { useCallback, useEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export { h, render };
export const html = htm.bind(h);
