/** Classify: the likeliest classes, and where the class token looks. */

import {field, h, percent, select, setOptions} from "../dom.js";
import {colorize, limits} from "../scales.js";

export class ClassifyView {
  name = "classify";
  title = "Classify";

  constructor(app) {
    this.app = app;
    this.layer = this.head = -1;
    this.list = h("ol", {class: "classes"});
    this.layers = select([], undefined, (value) => { this.layer = Number(value); this.prepare(); });
    this.heads = select([], undefined, (value) => { this.head = Number(value); this.compute(); });
    this.readout = h("p", {class: "hint"}, "The brighter, the more the class token takes from there.");
    this.panel = h("div", {class: "cards"},
      h("section", {class: "card", "aria-label": "Classes"}, h("h2", {class: "card-title"}, "What the model sees"), this.list,
        h("p", {class: "hint"}, "Choose a class to see which tokens speak for it.")),
      h("section", {class: "card", "aria-label": "Where the class token looks"},
        h("h2", {class: "card-title"}, "Where the class token looks"),
        h("div", {class: "pair"}, field("Layer", this.layers), field("Head", this.heads)), this.readout));
  }

  setPicture(picture) {
    this.picture = picture;
    this.bits = null;
    const {layers, heads, classes} = picture.about;
    if (this.layer < 0 || this.layer >= layers) this.layer = layers - 1;
    if (this.head >= heads) this.head = -1;
    setOptions(this.layers, Array.from({length: layers}, (_, n) => [n, `${n + 1} of ${layers}`]), this.layer);
    setOptions(this.heads, [[-1, "Mean"], ...Array.from({length: heads}, (_, n) => [n, `${n + 1} of ${heads}`])], this.head);
    this.list.replaceChildren(...classes.map(({index, name, probability}) => {
      const bar = h("span", {class: "share"});
      bar.style.setProperty("--share", probability);
      return h("li", {}, h("button", {type: "button", class: "class-row",
        onclick: () => this.app.explain(index)},
      h("span", {class: "class-name"}, name), h("span", {class: "mono"}, percent(probability)), bar));
    }));
    if (!classes.length) this.list.replaceChildren(h("li", {class: "hint"}, "This model has no classes."));
  }

  enter() {
    const {stage} = this.app;
    Object.assign(stage, {onhover: (region) => this.hover(region), onpick: null, ondrag: null});
    stage.setLevel(this.picture.tokenLevel);
    stage.paint({fill: stage.regions, opacity: 0, lines: 0.4, hover: -1, fromFill: false, checks: false});
    this.prepare();
  }

  async prepare() {
    const {picture, layer} = this;
    const bits = await this.app.attempt(() => picture.attention(layer), "Loading attention");
    if (picture !== this.picture || layer !== this.layer || !bits) return;
    this.bits = bits;
    this.compute();
  }

  compute() {
    if (!this.bits) return;
    const values = this.values = this.picture.attentionRow(this.bits, -1, this.head);
    this.colors = colorize(values, "ember", 0, limits(values, "ember")[1]);
    this.paint();
    this.app.settings();
  }

  paint() {
    const {stage} = this.app;
    if (this.app.view !== this) return;
    stage.paint({fill: stage.regions, colors: this.colors, opacity: this.colors ? 0.72 : 0, lines: 0.14, hover: stage.hover, fromFill: false, checks: false});
  }

  hover(region) {
    const known = region >= 0 && this.values;
    this.readout.textContent = known
      ? `Token ${region} receives ${percent(this.values[region], 2)} of the class token's attention.`
      : "The brighter, the more the class token takes from there.";
    if (known) this.app.say(this.readout.textContent);
    this.paint();
  }

  settings() { return {view: "classify", layer: this.layer, head: this.head < 0 ? undefined : this.head}; }

  downloads() {
    const {app, picture} = this;
    return [
      ["PNG", "this view", () => app.savePng("classify")],
      ["JSON", "classes, attention of the class token", () => app.saveJson("classify",
        {classes: picture.about.classes, attention: [...(this.values ?? [])]})],
    ];
  }
}
