// The view library: Preact with tagged templates, and the types of what is used of it.
import * as hooks from "./vendor/hooks.js";
import * as preact from "./vendor/preact.js";
import htm from "./vendor/htm.js";

/** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = /** @type {any} */ (htm).bind(/** @type {any} */ (preact).h);
/** @type {(view: any, root: Element) => void} */
export const render = /** @type {any} */ (preact).render;
/** @type {<T>(initial: T | (() => T)) => [T, (next: T | ((before: T) => T)) => void]} */
export const useState = /** @type {any} */ (hooks).useState;
/** @type {(effect: () => void | (() => void), inputs: any[]) => void} */
export const useEffect = /** @type {any} */ (hooks).useEffect;
/** @type {<T>(make: () => T, inputs: any[]) => T} */
export const useMemo = /** @type {any} */ (hooks).useMemo;
/** @type {<T>(initial: T) => {current: T}} */
export const useRef = /** @type {any} */ (hooks).useRef;
