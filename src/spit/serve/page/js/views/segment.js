/** Segment: the salient object; regions are added or removed by a click, and the mask follows. */

import * as api from "../api.js";
import {base64Bytes, halfToFloat, maskToRuns, unpackBits} from "../binary.js";
import {choices, field, h, number, percent, range, select, setOptions, toggle} from "../dom.js";
import {colorize} from "../scales.js";

const MOST_EDITS = 4000; // characters that travel for the snippet
const HAZE = [16, 18, 26, 184];

export class SegmentView {
  name = "segment";
  title = "Segment";

  constructor(app) {
    this.app = app;
    Object.assign(this, {look: "mask", method: "", clean: true, tau: null, edits: [], mask: null});
    this.looks = choices("Look", [["mask", "Mask"], ["cutout", "Cut-out"], ["soft", "Soft map"]], this.look,
      (look) => { this.look = look; this.paint(); });
    this.methods = select([["", "Automatic"], ["both", "Head and cut"], ["head", "Token head"], ["cut", "TokenCut"]], "",
      (method) => { this.method = method; this.ask(); });
    this.cleanBox = choices("Clean or raw", [["clean", "Clean"], ["raw", "Raw"]], "clean",
      (value) => { this.clean = value === "clean"; this.ask(); });
    const tau = range({min: -0.05, max: 0.9, step: 0.05, value: -0.05,
      oninput: (value) => this.tauField.say(value < 0 ? "Automatic" : value.toFixed(2)),
      onchange: (value) => { this.tau = value < 0 ? null : value; this.ask(); }});
    this.tauField = field("Threshold τ", tau, "The cosine above which two tokens are joined.");
    this.tauField.say("Automatic");
    this.levels = select([], undefined, (level) => this.setLevel(Number(level)));
    this.share = h("strong", {class: "figure"});
    this.changed = h("span", {class: "hint", "aria-live": "polite"});
    this.undoButton = h("button", {type: "button", class: "quiet", onclick: () => this.undo()}, "Undo");
    this.resetButton = h("button", {type: "button", class: "quiet", onclick: () => this.reset()}, "Reset");
    this.outlines = toggle("Outline regions", false, () => this.paint());
    this.panel = h("div", {class: "cards"},
      h("section", {class: "card", "aria-label": "Object"}, h("h2", {class: "card-title"}, "The object"),
        h("p", {class: "figure-row"}, this.share, h("span", {class: "hint"}, "of the picture")), this.looks, this.cleanBox,
        field("Method", this.methods), this.tauField),
      h("section", {class: "card", "aria-label": "Edit"}, h("h2", {class: "card-title"}, "Correct it by hand"),
        h("p", {class: "hint"}, "Click a region to add or remove it; drag over several."),
        field("Regions to click", this.levels), this.outlines,
        h("div", {class: "button-row"}, this.undoButton, this.resetButton, this.changed)));
  }

  setPicture(picture) {
    Object.assign(this, {picture, mask: null, base: null, edits: [], strokes: [], values: null});
    const levels = picture.shown.filter((level) => level > 0);
    this.level = picture.tokenLevel;
    setOptions(this.levels, levels.map((level) => [level, `${number(picture.counts[level])} ${
      level === picture.tokenLevel ? "tokens" : "regions"}`]), this.level);
  }

  enter() {
    const {stage} = this.app;
    this.setLevel(this.level, false);
    Object.assign(stage, {pinned: -1, onhover: () => this.paint(), onpick: (region) => this.begin(region),
      ondrag: (region) => this.stroke(region)});
    if (this.mask) this.paint();
    else {
      stage.paint({fill: stage.regions, opacity: 0, lines: 0.3, hover: -1, fromFill: false, checks: false});
      this.ask();
    }
  }

  leave() { this.app.stage.ondrag = null; }

  setLevel(level, paint = true) {
    const {stage} = this.app;
    this.level = level;
    stage.level = level;
    stage.hover = -1;
    stage.painter.setRegions(this.picture.labels(level));
    if (paint) this.paint();
  }

  async ask() {
    const {app, picture} = this, asked = {method: this.method || null, clean: this.clean, tau: this.tau};
    const answer = await app.attempt(async () =>
      (await api.post(`${picture.at}/segment`, asked)).json(), "Finding the object");
    if (!answer || picture !== this.picture) return;
    this.base = unpackBits(base64Bytes(answer.pixels), picture.width * picture.height);
    this.values = halfToFloat(base64Bytes(answer.values).buffer);
    this.answer = answer;
    this.replay();
    app.settings();
  }

  /** The server's mask with the edits on top. */
  replay() {
    this.mask = Uint16Array.from(this.base);
    for (const edit of this.edits) this.apply(edit);
    this.refresh();
  }

  apply({level, region, on}) {
    const {picture, mask} = this, labels = picture.labels(level), {boxes} = picture.statistics(level), {width} = picture;
    const [x0, y0, x1, y1] = boxes.subarray(4 * region, 4 * region + 4);
    for (let y = y0; y <= y1; y++) {
      for (let i = y * width + x0; i <= y * width + x1; i++) if (labels[i] === region) mask[i] = on;
    }
  }

  /** A click decides whether the stroke adds or removes: what most of the region is not. */
  begin(region) {
    if (!this.mask) return;
    const {picture, level} = this, labels = picture.labels(level), {boxes, sizes} = picture.statistics(level), {width} = picture;
    const [x0, y0, x1, y1] = boxes.subarray(4 * region, 4 * region + 4);
    let inside = 0;
    for (let y = y0; y <= y1; y++) {
      for (let i = y * width + x0; i <= y * width + x1; i++) if (labels[i] === region) inside += this.mask[i];
    }
    this.adding = 2 * inside < sizes[region] ? 1 : 0;
    this.strokes.push(this.edits.length);
    this.stroke(region);
  }

  stroke(region) {
    if (!this.mask) return;
    const edit = {level: this.level, region, on: this.adding};
    this.edits.push(edit);
    this.apply(edit);
    this.app.say(`Region ${region} ${edit.on ? "added to" : "removed from"} the mask`);
    this.refresh();
  }

  undo() {
    if (!this.strokes.length) return;
    this.edits.length = this.strokes.pop();
    this.replay();
  }

  reset() {
    this.edits = [];
    this.strokes = [];
    if (this.base) this.replay();
  }

  refresh() {
    let inside = 0;
    for (const value of this.mask) inside += value;
    this.share.textContent = percent(inside / this.mask.length);
    this.changed.textContent = this.edits.length ? `${number(this.edits.length)} ${
      this.edits.length > 1 ? "regions" : "region"} changed` : "";
    this.undoButton.disabled = this.resetButton.disabled = !this.edits.length;
    this.paint(true);
    this.app.settings();
  }

  paint(changed = false) {
    const {app, mask} = this, {stage} = app;
    if (app.view !== this || !mask) return;
    const lines = this.outlines.box.checked;
    const style = {hover: stage.hover};
    if (this.look === "soft") {
      const soft = this.values.map((value) => 1 / (1 + Math.exp(-value)));
      stage.paint({...style, fill: this.picture.labels(), colors: colorize(soft, "viridis", 0, 1), opacity: 0.8, fromFill: false,
        lines: lines ? 0.3 : 0.06, checks: false});
    } else {
      stage.paint({...style, fill: mask, changed, colors: Uint8Array.from([...HAZE, 0, 0, 0, 0]), opacity: 1,
        fromFill: !lines, lines: lines ? 0.35 : this.look === "mask" ? 1 : 0, checks: this.look === "cutout"});
    }
  }

  settings() {
    const edits = this.edits.map(({level, region, on}) => `${level}:${region}:${on}`).join(",");
    return {view: "segment", method: this.method || undefined, clean: this.clean, tau: this.tau,
      edits: edits.length <= MOST_EDITS ? edits : undefined}; // beyond, COCO-RLE has them
  }

  /** The mask as a PNG, or the photo with the mask as its alpha. */
  _picture(cutout) {
    const {picture, mask} = this, image = new ImageData(picture.width, picture.height), {data} = image;
    for (let i = 0, j = 0; i < mask.length; i++, j += 4) {
      for (let c = 0; c < 3; c++) data[j + c] = cutout ? (mask[i] ? picture.pixels[j + c] : 0) : 255 * mask[i];
      data[j + 3] = cutout && !mask[i] ? 0 : 255;
    }
    return image;
  }

  downloads() {
    const {app, picture} = this, {width, height} = picture;
    const coco = () => {
      let area = 0, x0 = width, y0 = height, x1 = -1, y1 = -1;
      this.mask.forEach((inside, i) => {
        if (!inside) return;
        const x = i % width, y = Math.floor(i / width);
        area++;
        x0 = Math.min(x0, x); x1 = Math.max(x1, x); y0 = Math.min(y0, y); y1 = Math.max(y1, y);
      });
      return {image: {width, height, file_name: picture.file.name}, annotation: {
        segmentation: {size: [height, width], counts: maskToRuns(this.mask, width, height)}, area, iscrowd: 0,
        bbox: area ? [x0, y0, x1 - x0 + 1, y1 - y0 + 1] : [0, 0, 0, 0]}, edits: this.edits};
    };
    return [
      ["Mask PNG", "white on black", () => app.saveImage("mask", this._picture(false))],
      ["Cut-out PNG", "transparent outside", () => app.saveImage("cutout", this._picture(true))],
      ["View PNG", "as shown", () => app.savePng("segment")],
      ["COCO-RLE", "JSON", () => app.saveJson("coco", coco())],
    ];
  }
}
