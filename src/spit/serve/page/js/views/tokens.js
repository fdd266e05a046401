/** Tokens: the hierarchy from pixels to coarse regions, and what each token attends to and is like. */

import {choices, field, fillTrack, h, number, range, select} from "../dom.js";
import {Hovering, lineStrength} from "../hovering.js";
import {distinct} from "../scales.js";
import {TokenCard} from "../token_card.js";

const BUDGETS = [32, 64, 96, 128, 196, 256, 384, 512, 768, 1024, 1536, 2048, null];

export class TokensView {
  name = "tokens";
  title = "Tokens";

  constructor(app) {
    this.app = app;
    this.look = "lines";
    this.card = new TokenCard({onchange: () => this.prepare(), onpoint: (token) => this.hold(token)});
    this.hovering = new Hovering(this.card);
    this.slider = range({min: 0, max: 1, value: 0, label: "Level of the hierarchy", oninput: (at) => this.walk(at)});
    this.slider.id = "level";
    this.readout = h("output", {class: "level-value", for: "level"});
    this.ticks = h("div", {class: "ticks", "aria-hidden": "true"});
    this.below = h("div", {class: "level-row"},
      h("div", {class: "level-head"}, h("span", {class: "level-name"}, "From pixels to regions"), this.readout),
      this.slider, this.ticks);
    this.looks = choices("Look", [["lines", "Outlines"], ["mean", "Mean colours"], ["distinct", "One colour each"]],
      this.look, (look) => { this.look = look; this.paint(); });
    this.panel = h("div", {class: "cards"}, this.card.element, this._settings());
  }

  _settings() {
    const {app} = this, change = (values) => app.change(values);
    if (!app.change) return h("section", {class: "card", "aria-label": "Look"}, this.looks); // a notebook: cut already
    const budget = range({min: 0, max: BUDGETS.length - 1, value: BUDGETS.length - 1,
      oninput: (at) => this.budget.say(BUDGETS[at] ?? "No limit"), onchange: (at) => change({max_tokens: BUDGETS[at]})});
    const compact = range({min: 0, max: 1, step: 0.05, value: 0,
      oninput: (value) => this.compact.say(value.toFixed(2)), onchange: (value) => change({compactness: value})});
    const refine = range({min: 0, max: 4, value: 0,
      oninput: (value) => this.refine.say(value || "Off"), onchange: (value) => change({refine: value})});
    this.own = h("button", {type: "button", class: "quiet small", onclick: () =>
      change({max_tokens: null, compactness: null, refine: null})}, "As the model was trained");
    this.kind = select(app.about.tokenizers.map((name) => [name, NAMES[name] ?? name]), app.options.tokenizer,
      (tokenizer) => { this._enable(tokenizer); change({tokenizer}); });
    this.model = select(app.about.models, app.options.model ?? app.about.model, (model) => change({model}));
    this.budget = field("Token budget", budget);
    this.compact = field("Compactness", compact, "Rounder regions, at some cost to edges.");
    this.refine = field("Refinement", refine, "Sweeps that move boundary pixels to the region they fit.");
    this.inputs = {budget, compact, refine};
    return h("section", {class: "card", "aria-label": "How the picture is cut"},
      h("h2", {class: "card-title"}, "How the picture is cut"), this.looks,
      field("Tokenizer", this.kind), this.budget, this.compact, this.refine, this.own,
      app.about.models.length > 1 ? field("Model", this.model) : null);
  }

  _enable(tokenizer) {
    for (const box of Object.values(this.inputs)) box.disabled = tokenizer !== "superpixel";
  }

  /** The sliders as the picture was cut; what was not set is the model's own. */
  _settle({max_tokens, compactness, refine, tokenizer}) {
    const own = this.picture.about.tokenizer_options ?? {}, {inputs} = this;
    const say = (box, input, given, kept, text) => {
      input.value = given ?? kept ?? 0;
      fillTrack(input);
      box.say(given !== null || kept !== undefined ? text(given ?? kept) : "Model's own");
    };
    inputs.budget.value = BUDGETS.indexOf(max_tokens) < 0 ? BUDGETS.length - 1 : BUDGETS.indexOf(max_tokens);
    fillTrack(inputs.budget);
    this.budget.say(max_tokens ?? own.max_tokens ?? "No limit");
    say(this.compact, inputs.compact, compactness, own.compactness, (value) => value.toFixed(2));
    say(this.refine, inputs.refine, refine, own.refine, (value) => value || "Off");
    this.own.hidden = max_tokens === null && compactness === null && refine === null;
    this.kind.value = tokenizer;
    this._enable(tokenizer);
  }

  setPicture(picture) {
    this.picture = picture;
    this.card.setPicture(picture);
    if (this.app.change) this._settle(this.app.options);
    this.levels = picture.shown;
    this.slider.max = this.levels.length - 1;
    this.at = this.levels.indexOf(picture.tokenLevel);
    this.slider.value = this.at;
    fillTrack(this.slider);
    const last = this.levels.length - 1;
    this.ticks.replaceChildren(...this.levels.map((level, at) => {
      const tick = h("span", {class: level === picture.tokenLevel ? "tick token-tick" : "tick"},
        level === 0 ? "pixels" : level === picture.tokenLevel ? "tokens" : "");
      tick.style.left = `${last ? (100 * at) / last : 0}%`;
      return tick;
    }));
    this._say();
  }

  enter() {
    const {stage} = this.app;
    Object.assign(stage, {onhover: (region) => this.hover(region), onpick: null, ondrag: null});
    stage.setLevel(this.levels[this.at]);
    this.paint();
    this.prepare();
  }

  async prepare() {
    const {picture} = this;
    await this.app.attempt(() => this.hovering.prepare(picture), "Loading tokens");
    if (picture === this.picture && this.app.view === this) this.hover(this.app.stage.hover);
  }

  walk(at) {
    const {stage} = this.app;
    this.at = at;
    stage.pinned = stage.hover = -1;
    stage.setLevel(this.levels[at]);
    this.card.clear();
    this._say();
    this.paint();
    this.app.settings();
  }

  _say() {
    const level = this.levels[this.at], {picture} = this;
    const text = level === 0 ? `${number(picture.counts[0])} pixels`
      : `${number(picture.counts[level])} ${level === picture.tokenLevel ? "tokens" : "regions"}`;
    this.readout.textContent = text;
    this.slider.setAttribute("aria-valuetext", `level ${level}, ${text}`);
  }

  hold(token) {
    const {stage} = this.app;
    stage.pinned = -1;
    stage.pointAt(token);
    stage.pinned = token;
  }

  hover(region) {
    const {picture, app} = this, level = this.levels[this.at];
    if (region < 0 || level === 0) {
      this.card.clear();
      this.paint();
      return;
    }
    const {units, regions, ready} = this.hovering, known = ready === picture ? {units, regions} : {};
    app.say(this.card.show(picture, level, region, known));
    const colors = level === picture.tokenLevel ? this.hovering.of(picture, region) : null;
    if (colors) app.stage.paint({fill: app.stage.regions, colors, opacity: 0.78, lines: 0.16, hover: region, fromFill: false,
      checks: false});
    else this.paint(region);
  }

  paint(hover = -1) {
    const {picture, app} = this, level = this.levels[this.at];
    const {stage} = app, pixels = picture.width * picture.height;
    const style = {fill: stage.regions, hover, fromFill: false, checks: false};
    if (level === 0) return stage.paint({...style, opacity: 0, lines: 0, hover: -1});
    const lines = lineStrength(picture.counts[level], pixels);
    if (this.look === "mean") {
      stage.paint({...style, colors: picture.statistics(level).colors, opacity: 1, lines: 0.12});
    } else if (this.look === "distinct") {
      stage.paint({...style, colors: distinct(picture.counts[level]), opacity: 0.7, lines: lines / 2});
    } else stage.paint({...style, opacity: 0, lines});
  }

  settings() {
    const {card} = this;
    return {view: "tokens", level: this.levels[this.at], ...(card.mode === "attention" ? {layer: card.layer, head: card.head < 0 ? undefined : card.head} : {})};
  }

  downloads() {
    const {picture, app} = this, level = this.levels[this.at];
    return [
      ["PNG", "this view", () => app.savePng("tokens")],
      ["JSON", "levels and regions", async () => app.saveJson("tokens", {
        levels: picture.about.levels, token_level: picture.tokenLevel, shown_level: level,
        columns: ["size", "red", "green", "blue", "gradient", "x", "y", "perimeter"],
        regions: await picture.regions().then((data) => Array.from({length: data.length / 8},
          (_, n) => [...data.subarray(8 * n, 8 * n + 8)].map((value) => Number(value.toPrecision(6)))))})],
    ];
  }
}

const NAMES = {superpixel: "Superpixels", patch: "Square patches", voronoi: "Voronoi cells"};
