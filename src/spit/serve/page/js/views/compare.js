/** Compare: patches, Voronoi cells and superpixels side by side on the same weights, or two models. */

import * as api from "../api.js";
import {halfToFloat} from "../binary.js";
import {choices, field, h, number, percent, select} from "../dom.js";
import {glow} from "../hovering.js";
import {cosines, row} from "../picture.js";
import {colorize, limits} from "../scales.js";
import {Stage} from "../stage.js";

const NAMES = {patch: "Square patches", voronoi: "Voronoi cells", superpixel: "Superpixels"};

export class CompareView {
  name = "compare";
  title = "Compare";
  wide = true;

  constructor(app) {
    this.app = app;
    Object.assign(this, {what: "tokenizers", look: "lines", slots: [], key: ""});
    const {models, model} = app.about;
    this.models = [model, models.find((name) => name !== model) ?? model];
    this.grid = h("div", {class: "grid"});
    this.kinds = choices("What to compare", [["tokenizers", "Tokenizers"], ["models", "Two models"]], this.what,
      (what) => { this.what = what; this.pair.hidden = what !== "models"; this.ask(); });
    this.looks = choices("What to show", [["lines", "Tokens"], ["mean", "Mean colours"], ["attention", "Attention"],
      ["relevance", "Relevance"]], this.look, (look) => { this.look = look; this.prepare(); });
    this.pair = h("div", {class: "pair", hidden: true}, ...[0, 1].map((n) => field(`Model ${n + 1}`, select(models,
      this.models[n], (name) => { this.models[n] = name; this.ask(); }))));
    this.readout = h("p", {class: "hint"}, "Point at one: the others show the token at the same place and what it is like.");
    this.panel = h("div", {class: "cards"}, h("section", {class: "card", "aria-label": "Comparison"},
      h("h2", {class: "card-title"}, "Side by side"), this.kinds, this.pair,
      h("h3", {class: "small-title"}, "Show"), this.looks, this.readout));
  }

  setPicture(picture) {
    this.picture = picture;
    this.key = "";
    this.slots = [];
    this.grid.replaceChildren();
  }

  enter() {
    this.app.show(this.grid);
    this.ask();
  }

  wanted() {
    const {options} = this.app;
    if (this.what === "models") return this.models.map((model) => ({title: model, options: {...options, model}}));
    return this.app.about.tokenizers.filter((name) => NAMES[name]).sort((a, b) => "pvs".indexOf(a[0]) - "pvs".indexOf(b[0]))
      .map((tokenizer) => ({title: NAMES[tokenizer], options: {...options, tokenizer}}));
  }

  async ask() {
    const {app, picture} = this, key = JSON.stringify(this.wanted());
    if (key === this.key) return this.prepare();
    this.key = key;
    this.slots = [];
    this.grid.replaceChildren();
    const wanted = this.wanted();
    for (const [n, {title, options}] of wanted.entries()) {
      const own = Object.keys(options).every((name) => (options[name] ?? null) === (picture.options[name] ?? null));
      const found = own ? picture : await app.analyse(picture.file, options, `${title}, ${n + 1} of ${wanted.length}`);
      if (key !== this.key || picture !== this.picture) return;
      if (found) this._add(title, found);
    }
    this.app.settings();
    this.prepare();
  }

  _add(title, picture) {
    const stage = new Stage({label: title, onhover: (region) => this.hover(slot, region)}), slot = {title, picture, stage};
    const [best] = picture.about.classes;
    stage.caption.replaceChildren(h("strong", {}, title), h("span", {class: "mono"}, `${number(picture.tokens)} tokens`));
    const list = h("ol", {class: "classes compact"}, picture.about.classes.slice(0, 3).map(({name, probability}) => {
      const bar = h("span", {class: "share"});
      bar.style.setProperty("--share", probability);
      return h("li", {class: "class-row"}, h("span", {class: "class-name"}, name),
        h("span", {class: "mono"}, percent(probability)), bar);
    }));
    if (best) stage.caption.append(list);
    this.slots.push(slot);
    this.grid.append(stage.element);
    stage.setPicture(picture);
    this.plain(slot);
  }

  async prepare() {
    const {look, app} = this;
    for (const slot of this.slots) {
      const {picture} = slot;
      await app.attempt(async () => {
        slot.units = await picture.units();
        if (look === "attention" && !slot.attention) {
          const bits = await picture.attention(picture.about.layers - 1), values = picture.attentionRow(bits, -1, -1);
          slot.attention = colorize(values, "ember", 0, limits(values, "ember")[1]);
        } else if (look === "relevance" && !slot.relevance) {
          const target = this.picture.about.classes[0]?.index ?? null;
          const reply = await api.post(`${picture.at}/explain`, {method: "relevance", target});
          const values = halfToFloat(await reply.arrayBuffer()), perToken = values.length === picture.tokens ? values
            : Float32Array.from({length: picture.tokens}, (_, n) => mean(values, picture, n));
          slot.relevance = colorize(perToken, "ember", ...limits(perToken, "ember"));
        }
      }, `${slot.title}: ${look === "lines" ? "tokens" : look}`);
      if (look !== this.look) return;
      this.plain(slot);
    }
  }

  plain(slot) {
    const {stage, picture} = slot, style = {fill: stage.regions, hover: -1, fromFill: false, checks: false};
    const colors = this.look === "mean" ? picture.statistics().colors : slot[this.look];
    if (colors) stage.paint({...style, colors, opacity: this.look === "mean" ? 1 : 0.75, lines: 0.14});
    else stage.paint({...style, opacity: 0, lines: 0.45});
  }

  hover(source, region) {
    const said = [];
    for (const slot of this.slots) {
      if (region < 0) { this.plain(slot); continue; }
      const {stage, picture, units} = slot, {xs, ys} = source.picture.statistics();
      const [x, y] = source.stage.pinned < 0 && source.stage.point ? source.stage.point
        : [Math.floor(xs[region]), Math.floor(ys[region])];
      const token = slot === source ? region : stage.regions[Math.floor(y * picture.height / source.picture.height) * picture.width
        + Math.floor(x * picture.width / source.picture.width)];
      said.push(`${slot.title}: ${number(picture.statistics().sizes[token])} px`);
      if (slot !== source) stage.hover = token;
      if (!units || this.look !== "lines") { stage.paint({hover: token}); continue; }
      slot.values = cosines(units, row(units, token), slot.values);
      slot.colors ??= new Uint8Array(4 * units.count);
      stage.paint({fill: stage.regions, colors: glow(slot.values, token, {out: slot.colors}), opacity: 0.75, lines: 0.14,
        hover: token, fromFill: false, checks: false});
    }
    this.readout.textContent = said.length ? said.join(" · ")
      : "Point at one: the others show the token at the same place and what it is like.";
    if (said.length) this.app.say(this.readout.textContent);
  }

  settings() {
    return this.what === "models" ? {view: "compare", models: this.models.join(",")}
      : {view: "compare", tokenizers: "patch,voronoi,superpixel"};
  }

  downloads() {
    const {app} = this;
    return [
      ["PNG", "side by side", () => app.saveMany("compare", this.slots.map((slot) => slot.stage))],
      ["JSON", "classes of each", () => app.saveJson("compare", {compared: this.slots.map(({title, picture}) => ({
        title, tokens: picture.tokens, classes: picture.about.classes}))})],
    ];
  }
}

/** The mean of a map over a token. */
function mean(values, picture, token) {
  const labels = picture.labels(), {boxes, sizes} = picture.statistics(), {width} = picture;
  const [x0, y0, x1, y1] = boxes.subarray(4 * token, 4 * token + 4);
  let sum = 0;
  for (let y = y0; y <= y1; y++) {
    for (let i = y * width + x0; i <= y * width + x1; i++) if (labels[i] === token) sum += values[i];
  }
  return sum / sizes[token];
}
