// A form made from a JSON Schema; what the schema leaves open is edited as JSON.
import { html, useEffect, useState } from "./dom.js";
import { inert } from "./format.js";

/** @param {{schema: any, value: any, onChange: (value: any) => void}} properties */
export function SchemaForm({ schema, value, onChange }) {
  const properties = schema?.type === "object" && schema.properties ? Object.entries(schema.properties) : null;
  if (!properties) return html`<${JsonField} value=${value} onChange=${onChange} />`;
  const required = new Set(schema.required || []);
  const set = (/** @type {string} */ name, /** @type {any} */ next) => {
    const copy = { ...value };
    if (next === undefined || next === "") delete copy[name];
    else copy[name] = next;
    onChange(copy);
  };
  return html`${properties.map(([name, rule]) => html`<${Field} key=${name} name=${name} rule=${rule} required=${required.has(name)} value=${value?.[name]} onChange=${(/** @type {any} */ next) => set(name, next)} />`)}`;
}

/** @param {{name: string, rule: any, required: boolean, value: any, onChange: (value: any) => void}} properties */
function Field({ name, rule, required, value, onChange }) {
  const label = html`${inert(rule.title || name)}${required ? " *" : ""}${rule.description ? html` <small>${inert(rule.description)}</small>` : null}`;
  const text = (/** @type {any} */ event) => event.target.value;
  if (rule.enum) return html`<label>${label}<select value=${value ?? ""} required=${required} onChange=${(/** @type {any} */ event) => onChange(rule.enum.find((/** @type {any} */ each) => String(each) === text(event)))}><option value=""></option>${rule.enum.map((/** @type {any} */ each) => html`<option value=${String(each)}>${inert(each)}</option>`)}</select></label>`;
  if (rule.type === "boolean") return html`<label><input type="checkbox" checked=${Boolean(value)} onChange=${(/** @type {any} */ event) => onChange(event.target.checked)} /> ${label}</label>`;
  if (rule.type === "integer" || rule.type === "number")
    return html`<label>${label}<input type="number" step=${rule.type === "integer" ? 1 : "any"} min=${rule.minimum} max=${rule.maximum} required=${required} value=${value ?? rule.default ?? ""} onInput=${(/** @type {any} */ event) => onChange(text(event) === "" ? undefined : Number(text(event)))} /></label>`;
  if (rule.type === "string") return html`<label>${label}<input minlength=${rule.minLength} maxlength=${rule.maxLength} pattern=${rule.pattern} required=${required} value=${value ?? rule.default ?? ""} onInput=${(/** @type {any} */ event) => onChange(text(event))} /></label>`;
  if (rule.type === "object" && rule.properties) return html`<fieldset><legend>${label}</legend><${SchemaForm} schema=${rule} value=${value || {}} onChange=${onChange} /></fieldset>`;
  return html`<label>${label}<${JsonField} value=${value} onChange=${onChange} /></label>`;
}

/** @param {{value: any, onChange: (value: any) => void}} properties */
function JsonField({ value, onChange }) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value, null, 1));
  const [bad, setBad] = useState("");
  useEffect(() => { if (value && Object.keys(value).length === 0) setText(""); }, [value]);
  const changed = (/** @type {any} */ event) => {
    setText(event.target.value);
    try {
      onChange(event.target.value.trim() ? JSON.parse(event.target.value) : {});
      setBad("");
    } catch (error) {
      setBad(String(error));
    }
  };
  return html`<textarea rows="4" aria-label="JSON" placeholder='{"key": "value"}' value=${text} onInput=${changed}></textarea>${bad ? html`<span class="problem" role="alert">${inert(bad)}</span>` : null}`;
}
