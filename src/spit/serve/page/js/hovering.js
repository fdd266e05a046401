/** Colours of what a token attends to or is like, for a stage. */

import {cosines, row} from "./picture.js";
import {colorize} from "./scales.js";

/** RGBA of each token, brighter where the value is larger. Similarities are spread between their quartile and the best. */
export function glow(values, self, {scale = "ember", fromZero = false, out = null} = {}) {
  let low = Infinity, high = -Infinity;
  for (let n = 0; n < values.length; n++) {
    if (n === self || values[n] <= -1) continue; // -1: left out
    if (values[n] < low) low = values[n];
    if (values[n] > high) high = values[n];
  }
  if (fromZero) low = 0;
  else low += 0.35 * (high - low); // most tokens of a picture are a little alike
  return colorize(values, scale, low, high > low ? high : low + 1e-6, {out});
}

/** How strong lines are drawn at a level: the more regions, the fainter. */
export function lineStrength(count, pixels) {
  const side = Math.sqrt(pixels / count);
  return side < 2.5 ? 0.1 : side < 5 ? 0.22 : side < 9 ? 0.38 : 0.55;
}

/** What the token under the pointer attends to or is like, once tokens or attention have arrived. */
export class Hovering {
  constructor(card) {
    this.card = card;
    this.values = this.colors = null;
  }

  /** Load what the card's mode needs; hovers before that show the region alone. */
  async prepare(picture) {
    const {mode, layer} = this.card;
    const [units, regions, bits] = await Promise.all([
      picture.units(), picture.regions(), mode === "attention" ? picture.attention(layer) : null]);
    Object.assign(this, {ready: picture, units, regions, bits, layer});
  }

  /** RGBA of the tokens for a token, or null if nothing has arrived yet. */
  of(picture, token) {
    if (this.ready !== picture) return null;
    const {card, units} = this;
    if (card.mode === "attention") {
      if (!this.bits || this.layer !== card.layer) return null;
      this.values = picture.attentionRow(this.bits, token, card.head);
    } else {
      if (this.values?.length !== units.count) this.values = new Float32Array(units.count);
      cosines(units, row(units, token), this.values);
    }
    if (this.colors?.length !== 4 * units.count) this.colors = new Uint8Array(4 * units.count);
    return glow(this.values, token, {fromZero: card.mode === "attention", out: this.colors});
  }
}
