/** What the page tells: progress that is measured where it can be, errors in one sentence, words for screen readers. */

const at = (id) => document.getElementById(id);
const SLOW = 250; // ms until something that runs is worth a word

export class Feedback {
  constructor() {
    this.running = new Set();
    at("notice").querySelector("button").addEventListener("click", () => this.clear());
  }

  /** Say something to screen readers, at most a few times a second. */
  say(text) {
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => { at("live").textContent = text; }, 300);
  }

  fail(error) {
    const text = error.message ?? String(error);
    at("notice").querySelector("p").textContent = text;
    at("notice").hidden = false;
  }

  clear() { at("notice").hidden = true; }

  /** Something long begins: `tell({done, total})` or `tell(share)` as it goes, `end()` when it is over. */
  begin(text) {
    const task = {text, share: null, start: performance.now()};
    this.running.add(task);
    task.tell = (state) => {
      task.share = typeof state === "number" ? state : state.done / state.total;
      task.count = typeof state === "number" ? null : state;
      this._show();
    };
    task.rename = (words) => { task.text = words; task.share = null; this._show(); };
    task.end = () => { this.running.delete(task); this._show(); };
    setTimeout(() => this._show(), SLOW);
    return task;
  }

  _show() {
    clearTimeout(this.ticking);
    const task = [...this.running].find((one) => performance.now() - one.start >= SLOW - 10), bar = at("progress");
    bar.hidden = !task;
    document.body.toggleAttribute("data-busy", Boolean(this.running.size));
    if (!task) {
      at("status").textContent = "";
      return;
    }
    const known = task.share !== null && task.share < 1;
    bar.classList.toggle("unknown", !known);
    bar.firstElementChild.style.width = known ? `${100 * task.share}%` : "";
    if (known) bar.setAttribute("aria-valuenow", Math.round(100 * task.share));
    else bar.removeAttribute("aria-valuenow");
    const seconds = (performance.now() - task.start) / 1000;
    at("status").textContent = `${task.text}${task.count ? `, ${task.count.done} of ${task.count.total}` : ""}${
      seconds >= 1 ? ` · ${seconds.toFixed(0)} s` : ""}`;
    this.ticking = setTimeout(() => this._show(), 1000);
  }
}
