/** Stage: one picture on a canvas that can be pointed at, tapped and walked by keyboard. */

import {h} from "./dom.js";
import {Painter} from "./painter.js";

const WALK = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1]};

export class Stage {
  /**
   * `onhover(region)` runs at most once a frame, with -1 when the pointer leaves; `onpick(region, event)` on a click, a tap
   * or Enter; `ondrag(region)` for further regions while the button is down.
   */
  constructor({label = "The picture and its tokens", onhover, onpick, ondrag, caption = ""} = {}) {
    Object.assign(this, {onhover, onpick, ondrag, level: 0, hover: -1, pinned: -1, picture: null, costs: []});
    this.canvas = h("canvas", {class: "stage-canvas", tabindex: "0", role: "application", "aria-label": label,
      "aria-roledescription": "picture", "aria-keyshortcuts": "ArrowLeft ArrowRight ArrowUp ArrowDown Enter Escape"});
    this.caption = h("figcaption", {class: "stage-caption"}, caption);
    this.element = h("figure", {class: "stage"}, this.canvas, this.caption);
    this.painter = new Painter(this.canvas);
    this._listen();
    new ResizeObserver(() => this.fit()).observe(this.element);
  }

  setPicture(picture) {
    this.picture = picture;
    this.level = picture.tokenLevel;
    this.hover = this.pinned = -1;
    this.painter.setPhoto(picture.pixels, picture.width, picture.height);
    this.element.style.setProperty("--ratio", `${picture.width} / ${picture.height}`);
    this.element.style.setProperty("--aspect", picture.width / picture.height);
    this.setLevel(this.level);
    this.fit();
  }

  setLevel(level) {
    this.level = level;
    const labels = this.picture.labels(level);
    this.painter.setRegions(labels);
    this.painter.setFill(labels);
  }

  get regions() { return this.picture.labels(this.level); }
  get count() { return this.picture.counts[Math.max(this.level, this.picture.first)]; }

  fit() {
    const box = this.canvas.getBoundingClientRect();
    if (!this.picture || !box.width) return;
    this.painter.resize(box.width, box.height, Math.min(2, devicePixelRatio || 1));
    this.draw();
  }

  /** Set fill, colours and style, and repaint with the next frame. */
  paint({fill, changed, colors, ...style}) {
    if (fill) this.painter.setFill(fill, changed);
    if (colors) this.painter.setColors(colors);
    this.painter.setStyle(style);
    this.draw();
  }

  draw() {
    this._wanted ||= requestAnimationFrame(() => {
      this._wanted = 0;
      if (this.picture) this.painter.draw();
    });
  }

  regionAt(event) {
    const box = this.canvas.getBoundingClientRect(), {width, height} = this.picture;
    const x = Math.floor(((event.clientX - box.left) / box.width) * width);
    const y = Math.floor(((event.clientY - box.top) / box.height) * height);
    this.point = [x, y];
    return x < 0 || y < 0 || x >= width || y >= height ? -1 : this.regions[y * width + x];
  }

  /** Point at a region from code; -1 at none. */
  pointAt(region) {
    if (region === this.hover) return;
    this.hover = region;
    this.onhover?.(region, this);
  }

  _listen() {
    const {canvas} = this;
    let last = null, frame = 0;
    canvas.addEventListener("pointermove", (event) => {
      if (!this.picture || event.pointerType === "touch") return;
      last = event;
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        const start = performance.now(), region = this.regionAt(last);
        if (this.dragging && region >= 0 && region !== this.dragged) {
          this.dragged = region;
          this.ondrag?.(region, this);
        }
        if (this.pinned < 0 && region !== this.hover) {
          this.pointAt(region);
          if (this._wanted) { // in this frame, not in the next
            cancelAnimationFrame(this._wanted);
            this._wanted = 0;
            this.painter.draw();
          }
          this.costs.push(performance.now() - start);
          if (this.costs.length > 500) this.costs.shift();
        }
      });
    });
    canvas.addEventListener("pointerleave", () => {
      cancelAnimationFrame(frame);
      frame = 0;
      if (this.picture && this.pinned < 0) this.pointAt(-1);
    });
    canvas.addEventListener("pointerdown", (event) => {
      this.touch = event.pointerType === "touch";
      if (!this.picture || event.button || this.touch) return; // a finger may be scrolling: its tap comes as a click
      this.dragged = this.regionAt(event);
      if (this.ondrag) {
        this.dragging = true;
        canvas.setPointerCapture(event.pointerId);
      }
      if (this.dragged >= 0) this._pick(this.dragged, event);
    });
    canvas.addEventListener("click", (event) => {
      const region = this.picture && this.touch ? this.regionAt(event) : -1;
      if (region >= 0) this._pick(region, event);
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { this.dragging = false; });
    canvas.addEventListener("keydown", (event) => this._key(event));
  }

  _pick(region, event) {
    if (!this.ondrag) { // a click holds the token, a second one lets it go
      const held = this.pinned === region;
      this.pinned = -1;
      this.pointAt(region);
      this.pinned = held ? -1 : region;
    } else this.pointAt(region);
    this.onpick?.(region, this, event);
  }

  _key(event) {
    if (!this.picture) return;
    if (event.key === "Escape") {
      this.pinned = -1;
      this.pointAt(-1);
    } else if (event.key === "Enter" || event.key === " ") {
      if (this.hover >= 0) this._pick(this.hover, event);
    } else if (WALK[event.key]) {
      this.pinned = -1;
      this.pointAt(this._neighbour(...WALK[event.key]));
    } else return;
    event.preventDefault();
  }

  /** The region whose centre is nearest in a direction; the one in the middle if none is pointed at. */
  _neighbour(dx, dy) {
    const {xs, ys} = this.picture.statistics(this.level), {width, height} = this.picture;
    const from = this.hover, x = from < 0 ? width / 2 : xs[from], y = from < 0 ? height / 2 : ys[from];
    let best = from, least = Infinity;
    for (let n = 0; n < xs.length; n++) {
      if (n === from) continue;
      const along = (xs[n] - x) * dx + (ys[n] - y) * dy, across = Math.abs((xs[n] - x) * dy) + Math.abs((ys[n] - y) * dx);
      if (from >= 0 && along < 0.5) continue;
      const cost = from < 0 ? (xs[n] - x) ** 2 + (ys[n] - y) ** 2 : along + 2.5 * across;
      if (cost < least) { least = cost; best = n; }
    }
    return best;
  }
}
