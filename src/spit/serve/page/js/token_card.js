/** TokenCard: what is known of the token under the pointer. */

import {field, h, hex, number, percent, select, setOptions, choices} from "./dom.js";
import {cosines, largest, row} from "./picture.js";

const LIKE = 5; // similar tokens to show

export class TokenCard {
  /** `onchange` runs when what a hover shows was changed; `onpoint(token)` when a similar token is pointed at. */
  constructor({onchange, onpoint}) {
    Object.assign(this, {mode: "similar", layer: -1, head: -1, scratch: null});
    this.modes = choices("What a hover shows", [["similar", "Similar"], ["attention", "Attends to"]], "similar", (mode) => {
      this.mode = mode;
      this._enable();
      onchange();
    });
    this.layers = select([], undefined, (value) => { this.layer = Number(value); onchange(); });
    this.heads = select([], undefined, (value) => { this.head = Number(value); onchange(); });
    this.where = h("div", {class: "pair"}, field("Layer", this.layers), field("Head", this.heads));
    this.title = h("h2", {class: "card-title"}, "Token");
    this.empty = h("p", {class: "hint"},
      "Point at the picture, or focus it and use the arrow keys. A click holds a token.");
    this.swatch = h("span", {class: "swatch"});
    this.color = h("span", {class: "mono"});
    this.palette = h("div", {class: "palette", role: "img"});
    this.facts = h("dl", {class: "facts"});
    this.like = h("div", {class: "like"});
    for (let n = 0; n < LIKE; n++) {
      const canvas = h("canvas", {width: 56, height: 56}), value = h("span", {class: "mono"});
      const button = h("button", {type: "button", class: "like-one"}, canvas, value);
      button.addEventListener("click", () => onpoint(Number(button.dataset.token)));
      Object.assign(button, {figure: value, context: canvas.getContext("2d")});
      this.like.append(button);
    }
    this.likeTitle = h("h3", {class: "small-title"}, "Most like it");
    this.body = h("div", {class: "token-body", hidden: true},
      h("div", {class: "color-row"}, this.swatch, this.color, this.palette), this.facts, this.likeTitle, this.like);
    this.element = h("section", {class: "card token-card", "aria-label": "Token"},
      h("div", {class: "card-head"}, this.title), this.modes, this.where, this.empty, this.body);
    this._rows = {};
  }

  setPicture(picture) {
    const {layers, heads} = picture.about;
    if (this.layer < 0 || this.layer >= layers) this.layer = layers - 1;
    if (this.head >= heads) this.head = -1;
    setOptions(this.layers, Array.from({length: layers}, (_, n) => [n, `${n + 1} of ${layers}`]), this.layer);
    setOptions(this.heads, [[-1, "Mean"], ...Array.from({length: heads}, (_, n) => [n, `${n + 1} of ${heads}`])], this.head);
    this.modes.querySelectorAll("button")[1].disabled = !layers;
    this._enable();
    this.clear();
  }

  _enable() {
    this.where.hidden = this.mode !== "attention";
  }

  clear() {
    this.title.textContent = "Token";
    this.empty.hidden = false;
    this.body.hidden = true;
  }

  _fact(name, value) {
    let box = this._rows[name];
    if (!box) {
      box = this._rows[name] = h("div", {}, h("dt", {}, name), h("dd", {}));
      this.facts.append(box);
    }
    box.hidden = value === null;
    box.lastChild.textContent = value ?? "";
  }

  /** Show a region of any level; similarities only of tokens. Returns one sentence about it. */
  show(picture, level, region, {units, regions, received} = {}) {
    const stats = picture.statistics(level), size = stats.sizes[region], isToken = level === picture.tokenLevel;
    const color = stats.colors.subarray(4 * region, 4 * region + 3), share = size / (picture.width * picture.height);
    this.title.textContent = `${isToken ? "Token" : "Region"} ${number(region)}`;
    this.empty.hidden = true;
    this.body.hidden = false;
    this.swatch.style.background = hex(color);
    this.color.textContent = hex(color);
    this._palette(picture.palette(region, level));
    this._fact("Size", `${number(size)} px · ${percent(share, share < 0.001 ? 3 : 2)}`);
    const known = isToken && regions ? regions.subarray(8 * region, 8 * region + 8) : null;
    this._fact("Texture", known ? `${known[4].toFixed(3)} ${texture(known[4])}` : null);
    this._fact("Compactness", known && known[7] ? Math.min(1, (4 * Math.PI * size) / known[7] ** 2).toFixed(2) : null);
    this._fact("Class token's attention", received === undefined ? null : percent(received, 2));
    const similar = isToken && units ? this._similar(picture, units, region) : null;
    this.likeTitle.hidden = this.like.hidden = !similar;
    return `${this.title.textContent}, ${number(size)} pixels, colour ${hex(color)}`;
  }

  _palette(colors) {
    const bars = this.palette.children;
    colors.forEach(({rgb, share}, n) => {
      const bar = bars[n] ?? this.palette.appendChild(h("span"));
      bar.style.background = hex(rgb);
      bar.style.flexGrow = 100 * share;
      bar.hidden = false;
    });
    for (let n = colors.length; n < bars.length; n++) bars[n].hidden = true;
    this.palette.setAttribute("aria-label", `Colours: ${colors.map(({rgb}) => hex(rgb)).join(", ")}`);
  }

  _similar(picture, units, region) {
    if (this.scratch?.length !== units.count) this.scratch = new Float32Array(units.count);
    const values = cosines(units, row(units, region), this.scratch), best = largest(values, LIKE, region);
    const {boxes} = picture.statistics();
    [...this.like.children].forEach((button, at) => {
      const token = best[at];
      button.hidden = token === undefined;
      if (button.hidden) return;
      const [x0, y0, x1, y1] = boxes.subarray(4 * token, 4 * token + 4);
      const side = Math.max(x1 - x0, y1 - y0) * 1.3 + 6, x = (x0 + x1 + 1 - side) / 2, y = (y0 + y1 + 1 - side) / 2;
      button.context.fillStyle = "#8884";
      button.context.clearRect(0, 0, 56, 56);
      button.context.fillRect(0, 0, 56, 56);
      button.context.drawImage(picture.bitmap, x, y, side, side, 0, 0, 56, 56);
      button.figure.textContent = values[token].toFixed(2);
      button.dataset.token = token;
      button.setAttribute("aria-label", `Token ${token}, cosine ${values[token].toFixed(2)}`);
    });
    return values;
  }
}

/** The mean length of the grey gradient, in words. */
function texture(value) {
  return value < 0.02 ? "smooth" : value < 0.06 ? "soft" : value < 0.14 ? "textured" : "busy";
}
