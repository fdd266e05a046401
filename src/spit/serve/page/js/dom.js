/** Small helpers for making elements. */

/** An element: `h("button", {class: "quiet", onclick: run, "aria-pressed": "false"}, "Run")`. */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked" || key === "selected") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

let counter = 0;

/** A label over a control, with room for the control's value. */
export function field(text, control, hint) {
  control.id ||= `c${++counter}`;
  const output = h("output", {class: "field-value", for: control.id});
  const box = h("div", {class: "field"},
    h("div", {class: "field-head"}, h("label", {for: control.id}, text), output), control,
    hint ? h("p", {class: "hint"}, hint) : null);
  box.say = (value) => { output.textContent = value; };
  return box;
}

/** A drop-down; options are `[value, text]` or plain strings. */
export function select(options, value, onchange) {
  const box = h("select", {onchange: () => onchange(box.value)});
  setOptions(box, options, value);
  return box;
}

export function setOptions(box, options, value) {
  box.replaceChildren(...options.map((one) => {
    const [key, text] = Array.isArray(one) ? one : [one, one];
    return h("option", {value: key, selected: String(key) === String(value)}, text);
  }));
  if (value !== undefined) box.value = String(value);
}

/** A slider. `oninput` runs while it moves, `onchange` when it rests. */
export function range({min, max, step = 1, value, oninput, onchange, label}) {
  const box = h("input", {type: "range", min, max, step, "aria-label": label,
    oninput: () => { fillTrack(box); oninput?.(Number(box.value)); }, onchange: () => onchange?.(Number(box.value))});
  box.value = value;
  fillTrack(box);
  return box;
}

/** Colour the track up to the thumb; also after a value was set by code. */
export function fillTrack(box) {
  const share = (box.value - box.min) / Math.max(1e-9, box.max - box.min);
  box.style.setProperty("--filled", `${100 * share}%`);
}

/** A row of exclusive buttons (radio group) for a few choices. */
export function choices(label, options, value, onchange) {
  const buttons = options.map(([key, text, title]) => {
    const button = h("button", {type: "button", role: "radio", title, "data-value": key}, text);
    button.addEventListener("click", () => { group.set(key); onchange(key); });
    return button;
  });
  const group = h("div", {class: "choices", role: "radiogroup", "aria-label": label}, buttons);
  group.set = (wanted) => {
    group.value = wanted;
    for (const button of buttons) {
      const on = button.dataset.value === String(wanted);
      button.setAttribute("aria-checked", on);
      button.tabIndex = on ? 0 : -1;
    }
  };
  group.addEventListener("keydown", (event) => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (!step) return;
    event.preventDefault();
    const open = buttons.filter((button) => !button.disabled);
    const next = open[(open.indexOf(document.activeElement) + step + open.length) % open.length];
    next.focus();
    next.click();
  });
  group.set(value);
  return group;
}

/** A switch with its text. */
export function toggle(text, value, onchange) {
  const box = h("input", {type: "checkbox", role: "switch", checked: value, onchange: () => onchange(box.checked)});
  const label = h("label", {class: "switch"}, box, h("span", {class: "knob", "aria-hidden": "true"}), h("span", {}, text));
  label.box = box;
  return label;
}

export const number = (value) => Math.round(value).toLocaleString("en-US");
export const percent = (value, digits = 1) => `${(100 * value).toFixed(digits)} %`;
export const hex = (rgb) => "#" + [0, 1, 2].map((c) => Math.round(rgb[c]).toString(16).padStart(2, "0")).join("");

/** Save bytes as a file. */
export function save(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = h("a", {href: address, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
