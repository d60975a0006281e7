// Small helpers. Text from programs only ever becomes text nodes and attributes set by name.

export const make = (tag, props = {}, ...kids) => {
  const el = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (key.startsWith("on")) el.addEventListener(key.slice(2), value);
    else if (key in el) el[key] = value;
    else el.setAttribute(key, value);
  }
  el.append(...kids);
  return el;
};

export const clock = (ms) => {
  const s = Math.floor(Math.max(0, ms) / 1000), two = (n) => String(n).padStart(2, "0");
  const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
  return (h ? h + ":" + two(m) : m) + ":" + two(s % 60);
};

export const bytes = (n) => {
  const units = ["B", "KB", "MB", "GB"];
  let i = 0;
  while (n >= 1000 && i < units.length - 1) { n /= 1000; i++; }
  return (i && n < 10 ? n.toFixed(1) : Math.round(n)) + " " + units[i];
};

// What the page remembers between visits; a browser that keeps nothing is no reason to fail.
export const kept = {
  get(key, usual) {
    try { return localStorage.getItem("tapdeck." + key) ?? usual; } catch { return usual; }
  },
  set(key, value) {
    try { localStorage.setItem("tapdeck." + key, value); } catch { /* nothing is kept */ }
  },
};
