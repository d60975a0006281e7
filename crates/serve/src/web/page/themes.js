// The themes that the server offers: the one in use colours the page and all that it paints.

import { kept } from "./dom.js";

const PARTS = ["fg", "bg", "cursor"];
let all = [];
let current = null;
const listeners = new Set();

export const themes = {
  // The colours to ask for, as the server spells them; undefined before the server has told any.
  colours() {
    if (!current) return undefined;
    const { fg, bg, cursor, ansi } = current;
    return { fg, bg, cursor, ansi };
  },

  // Takes the server's themes, and uses the one chosen in this browser before, if it still exists.
  offer(offered, usual) {
    all = offered;
    const known = (name) => all.find((theme) => theme.name === name);
    use(known(kept.get("theme", "")) ?? known(usual) ?? all[0]);
  },

  names: () => all.map((theme) => theme.name),
  name: () => current?.name,

  choose(name) {
    kept.set("theme", name);
    use(all.find((theme) => theme.name === name));
  },

  // Calls back at every change; returns what ends that.
  watch(changed) {
    listeners.add(changed);
    return () => listeners.delete(changed);
  },
};

const use = (theme) => {
  if (!theme || theme === current) return;
  current = theme;
  const { style } = document.documentElement;
  style.setProperty("color-scheme", theme.light ? "light" : "dark");
  for (const part of PARTS) style.setProperty("--" + part, "#" + theme[part]);
  theme.ansi.forEach((colour, i) => style.setProperty("--c" + i, "#" + colour));
  for (const changed of listeners) changed();
};
