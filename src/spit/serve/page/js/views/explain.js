/** Explain: which tokens a prediction rests on. */

import * as api from "../api.js";
import {halfToFloat} from "../binary.js";
import {field, h, percent, range, select, setOptions} from "../dom.js";
import {colorize, gradient, limits, SCALES} from "../scales.js";

const STEPS = 1024; // of a map that is not of tokens

export class ExplainView {
  name = "explain";
  title = "Explain";

  constructor(app) {
    this.app = app;
    Object.assign(this, {method: "relevance", target: null, opacity: 0.75, scale: "ember", passes: 64, found: new Map()});
    this.methods = select([], undefined, (method) => { this.method = method; this.ask(); });
    this.classes = select([], undefined, (value) => {
      this.other.closest(".field").hidden = value !== "other";
      if (value === "other") this.other.focus();
      else { this.target = Number(value); this.ask(); }
    });
    this.other = h("input", {type: "text", placeholder: "tabby, or a number", autocomplete: "off", spellcheck: "false",
      onchange: () => { if (this.other.value.trim()) { this.target = this.other.value.trim(); this.ask(); } }});
    this.opacityBox = range({min: 0, max: 1, step: 0.01, value: this.opacity,
      oninput: (value) => { this.opacity = value; this.opacityField.say(percent(value, 0)); this.paint(); }});
    this.opacityField = field("Opacity", this.opacityBox);
    this.opacityField.say(percent(this.opacity, 0));
    this.scales = select(SCALES.map((name) => [name, name[0].toUpperCase() + name.slice(1)]), this.scale,
      (name) => { this.scale = name; this.color(); });
    this.passField = field("Passes", select([16, 32, 64, 128, 256].map((n) => [n, String(n)]), this.passes,
      (value) => { this.passes = Number(value); this.ask(); }), "More give a steadier map, and take longer.");
    this.legend = h("div", {class: "legend"});
    this.low = h("span", {class: "mono"});
    this.high = h("span", {class: "mono"});
    this.readout = h("p", {class: "hint"});
    this.note = h("p", {class: "hint"});
    const otherField = field("Another class", this.other);
    otherField.hidden = true;
    this.panel = h("div", {class: "cards"}, h("section", {class: "card", "aria-label": "Explanation"},
      h("h2", {class: "card-title"}, "What it rests on"), field("Method", this.methods), this.note, this.passField,
      field("Class", this.classes), otherField, this.opacityField, field("Colour scale", this.scales),
      h("div", {class: "legend-row"}, this.low, this.legend, this.high), this.readout));
  }

  setPicture(picture) {
    this.picture = picture;
    this.found = new Map();
    this.values = null;
    this.known = new Map(picture.about.methods.map((one) => [one.name, one]));
    const names = [...this.known.keys()];
    if (!names.includes(this.method)) this.method = names[0];
    setOptions(this.methods, names.map((name) => [name, name.replaceAll("_", " ")]), this.method);
    const {classes} = picture.about;
    if (typeof this.target !== "string") this.target = classes[0]?.index ?? null;
    this._classes();
  }

  _classes() {
    const {classes} = this.picture.about;
    setOptions(this.classes, [...classes.map(({index, name, probability}) => [index, `${name} · ${percent(probability)}`]),
      ["other", "Another class…"]], typeof this.target === "string" ? "other" : this.target ?? "other");
    this.other.closest(".field").hidden = typeof this.target !== "string";
  }

  choose(index) {
    this.target = index;
    this._classes();
  }

  enter() {
    const {stage} = this.app;
    Object.assign(stage, {onhover: (region) => this.hover(region), onpick: null, ondrag: null});
    stage.setLevel(this.picture.tokenLevel);
    stage.paint({fill: stage.regions, opacity: 0, lines: 0.3, hover: -1, fromFill: false, checks: false});
    this.ask();
  }

  _key() { return [this.method, this.target, this.known.get(this.method)?.slow ? this.passes : ""].join(" "); }

  async ask() {
    const {app, picture, method, target} = this, slow = this.known.get(method)?.slow;
    const key = this._key();
    this.passField.hidden = !slow;
    this.note.textContent = this.known.get(method)?.slow ? "Asks the model many times: some seconds."
      : !this.known.get(method)?.of_class ? "The same for any class." : "";
    this.classes.disabled = !this.known.get(method)?.of_class;
    if (!this.found.has(key)) {
      const answer = await app.attempt((tell) => api.withJob(async (job) => {
        const reply = await api.post(`${picture.at}/explain?job=${job}`, {method, target, ...(slow ? {samples: this.passes} : {})});
        const shape = (reply.headers.get("X-Shape") ?? "").match(/\d+/g)?.map(Number) ?? [];
        const values = halfToFloat(await reply.arrayBuffer()), scale = Number(reply.headers.get("X-Scale") ?? 1);
        return {shape, values: values.map((value) => value * scale)};
      }, tell), `Explaining with ${method.replaceAll("_", " ")}`);
      if (!answer) return;
      if (picture !== this.picture) return;
      this.found.set(key, answer);
    }
    if (key !== this._key()) return;
    Object.assign(this, this.found.get(key));
    this.color();
    app.settings();
  }

  /** Colours for the values; a map of pixels becomes steps of its own. */
  color() {
    if (!this.values) return;
    const {values, scale, app} = this, [low, high] = limits(values, scale);
    if (values.length === this.picture.tokens) {
      this.fill = this.picture.labels();
      this.colors = colorize(values, scale, low, high);
    } else {
      this.fill = Uint16Array.from(values, (value) =>
        Math.round((STEPS - 1) * Math.min(1, Math.max(0, (value - low) / (high - low)))));
      this.colors = colorize(Float32Array.from({length: STEPS}, (_, n) => n / (STEPS - 1)), scale, 0, 1);
    }
    this.legend.style.background = gradient(scale);
    this.low.textContent = low.toPrecision(2);
    this.high.textContent = high.toPrecision(2);
    if (app.view === this) this.paint();
  }

  paint() {
    const {stage} = this.app;
    if (!this.colors || this.app.view !== this) return;
    stage.paint({fill: this.fill, colors: this.colors, opacity: this.opacity, lines: 0.08, hover: stage.hover,
      fromFill: false, checks: false});
  }

  hover(region) {
    const {values, app, picture} = this;
    let text = "";
    if (region >= 0 && values) {
      let value = values[region];
      if (values.length !== picture.tokens) {
        const {xs, ys} = picture.statistics(), [x, y] = app.stage.point ?? [xs[region] | 0, ys[region] | 0];
        value = values[y * picture.width + x];
      }
      let below = 0;
      for (const one of values) below += one < value ? 1 : 0;
      text = `Token ${region}: ${value.toPrecision(3)}, above ${percent(below / values.length, 0)} of the picture.`;
      app.say(text);
    }
    this.readout.textContent = text;
    this.paint();
  }

  settings() { return {view: "explain", method: this.method, target: this.target, samples: this.known.get(this.method)?.slow ? this.passes : undefined}; }

  downloads() {
    const {app, picture} = this, about = () => ({method: this.method, target: this.target, values: [...(this.values ?? [])]});
    return [
      ["PNG", "this view", () => app.savePng("explain")],
      ["JSON", "values of the tokens", () => app.saveJson("explain", about())],
    ];
  }
}
