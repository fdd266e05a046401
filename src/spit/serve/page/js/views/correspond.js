/** Correspond: two or three pictures; point at a part of one and see it in the others. */

import * as api from "../api.js";
import {h, toggle} from "../dom.js";
import {glow} from "../hovering.js";
import {cosines, largest, row} from "../picture.js";
import {Stage} from "../stage.js";

const MOST = 3;

export class CorrespondView {
  name = "correspond";
  title = "Correspond";
  wide = true;

  constructor(app) {
    this.app = app;
    this.slots = [];
    this.grid = h("div", {class: "grid"});
    this.adding = h("div", {class: "slot-empty"});
    this.readout = h("p", {class: "hint"}, "Point at a part of any picture.");
    this.objects = toggle("Only the object of each picture", false, () => this.findObjects());
    this.exact = toggle("Show only the best match", false, () => this.repaint());
    this.panel = h("div", {class: "cards"}, h("section", {class: "card", "aria-label": "Correspondence"},
      h("h2", {class: "card-title"}, "The same part, elsewhere"), this.readout, this.exact, this.objects,
      h("p", {class: "hint"}, "Cosine of the final tokens, computed here as you point.")));
  }

  setPicture(picture) {
    const others = this.slots.slice(1).map((slot) => slot.picture)
      .filter((other) => other.about.width_of_token === picture.about.width_of_token);
    this.slots = [];
    this.grid.replaceChildren(this.adding);
    this._add(picture);
    others.forEach((other) => this._add(other));
  }

  enter() {
    this.app.show(this.grid);
    this._offer();
    for (const slot of this.slots) {
      slot.stage.fit();
      this.app.attempt(async () => { slot.units = await slot.picture.units(); this.repaint(); }, "Loading tokens");
    }
    this.repaint();
  }

  /** The place for a further picture, with the samples. */
  _offer() {
    this.adding.hidden = this.slots.length >= MOST;
    this.adding.replaceChildren(
      h("p", {}, this.slots.length < 2 ? "Add a second picture" : "Add a third picture"),
      h("button", {type: "button", class: "primary", onclick: () => this.app.pick((file) => this.add(file))}, "Choose a file"),
      this.app.sampleList((file) => this.add(file)));
  }

  async add(file) {
    if (this.slots.length >= MOST) return;
    const picture = await this.app.analyse(file, this.app.options);
    if (!picture) return;
    this._add(picture);
    this.enter();
    this.app.settings();
    if (this.objects.box.checked) this.findObjects();
  }

  _add(picture) {
    const stage = new Stage({label: `Picture ${this.slots.length + 1}: ${picture.file.name}`,
      onhover: (region) => this.hover(slot, region)});
    const slot = {picture, stage, units: null};
    const remove = this.slots.length ? h("button", {type: "button", class: "quiet small", "aria-label":
      `Remove ${picture.file.name}`, onclick: () => this._remove(slot)}, "Remove") : null;
    stage.caption.replaceChildren(h("span", {}, picture.file.name), ...(remove ? [remove] : []));
    this.slots.push(slot);
    this.grid.insertBefore(stage.element, this.adding);
    stage.setPicture(picture);
    this.plain(slot);
  }

  _remove(slot) {
    this.slots.splice(this.slots.indexOf(slot), 1);
    slot.stage.element.remove();
    this._offer();
    this.repaint();
    this.app.settings();
  }

  /** Which tokens of each picture belong to its object, as the model cuts it. */
  async findObjects() {
    if (this.objects.box.checked && this.slots.length > 1 && this.slots.some((slot) => !slot.object)) {
      const [source, ...targets] = this.slots.map((slot) => slot.picture.id);
      const answer = await this.app.attempt(async () => (await api.post("explorer/correspond", {source, targets})).json(),
        "Finding the objects");
      if (answer) [answer.source, ...answer.targets].forEach((side, n) => { this.slots[n].object = Float32Array.from(side); });
    }
    this.repaint();
  }

  plain(slot, hover = -1) {
    slot.stage.paint({fill: slot.stage.regions, opacity: 0, lines: 0.32, hover, fromFill: false, checks: false});
  }

  repaint() {
    const {source} = this;
    if (source && this.slots.includes(source)) this.hover(source, source.stage.hover);
    else this.slots.forEach((slot) => this.plain(slot));
  }

  hover(source, region) {
    this.source = source;
    for (const slot of this.slots) if (slot !== source) slot.stage.pinned = -1;
    if (region < 0 || !source.units) {
      this.slots.forEach((slot) => this.plain(slot));
      this.readout.textContent = "Point at a part of any picture.";
      return;
    }
    const vector = row(source.units, region), found = [];
    for (const slot of this.slots) {
      if (!slot.units) continue;
      slot.values = cosines(slot.units, vector, slot.values?.length === slot.units.count ? slot.values : undefined);
      if (this.objects.box.checked && slot.object && slot !== source) {
        for (let n = 0; n < slot.values.length; n++) if (!slot.object[n]) slot.values[n] = -1;
      }
      const [best] = largest(slot.values, 1, slot === source ? region : -1);
      if (slot === source) { this.plain(slot, region); continue; }
      if (slot.colors?.length !== 4 * slot.units.count) slot.colors = new Uint8Array(4 * slot.units.count);
      slot.stage.hover = best;
      slot.stage.paint({fill: slot.stage.regions, colors: glow(slot.values, -1, {out: slot.colors}), hover: best,
        opacity: this.exact.box.checked ? 0 : 0.78, lines: 0.14, fromFill: false, checks: false});
      found.push(`${slot.values[best].toFixed(2)} in ${slot.picture.file.name}`);
    }
    this.readout.textContent = found.length ? `Token ${region}: best cosine ${found.join(", ")}.`
      : `Token ${region}. Add a second picture to see its like.`;
    this.app.say(this.readout.textContent);
  }

  settings() {
    const others = this.slots.slice(1).map((slot) => slot.picture);
    return {view: "correspond", others: others.map((one) => one.id), names: others.map((one) => one.file.name)};
  }

  downloads() {
    const {app} = this;
    return [
      ["PNG", "side by side", () => app.saveMany("correspond", this.slots.map((slot) => slot.stage))],
      ["JSON", "best match of each token", () => app.saveJson("correspond", {pictures: this.slots.map((slot) => slot.picture.file.name),
        matches: this._matches()})],
    ];
  }

  /** For every token of the first picture, the nearest token of each other picture. */
  _matches() {
    const [first, ...others] = this.slots.filter((slot) => slot.units);
    return others.map((other) => Array.from({length: first.units.count}, (_, n) => {
      const values = cosines(other.units, row(first.units, n)), [best] = largest(values, 1);
      return [n, best, Number(values[best].toFixed(4))];
    }));
  }
}
