/** Light and dark: as the system has it, until the switch says otherwise. */

export function connectTheme(button, onchange = () => {}) {
  const root = document.documentElement, system = matchMedia("(prefers-color-scheme: dark)");
  const set = (dark) => {
    root.dataset.theme = dark ? "dark" : "light";
    button.setAttribute("aria-pressed", dark);
    onchange(dark);
  };
  system.addEventListener("change", (event) => { if (!localStorage.getItem("theme")) set(event.matches); });
  button.addEventListener("click", () => {
    const dark = root.dataset.theme !== "dark";
    localStorage.setItem("theme", dark ? "dark" : "light");
    set(dark);
  });
  set(root.dataset.theme === "dark");
}
