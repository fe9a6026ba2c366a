// Counts down to deadlines and loads the page anew now and then. Everything works without it, too.
"use strict";

(() => {
  const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

  // The two largest units, as the page itself writes them.
  const words = (seconds) => {
    const parts = units.map(([name, size], index) => {
      const above = index ? units[index - 1][1] : Infinity;
      return [name, Math.floor((seconds % above) / size)];
    });
    let first = parts.findIndex(([, count]) => count > 0);
    if (first < 0) first = parts.length - 1;
    return parts
      .slice(first, first + 2)
      .filter(([, count], index) => index === 0 || count > 0)
      .map(([name, count]) => `${count} ${name}${count === 1 ? "" : "s"}`)
      .join(" ");
  };

  const countdowns = document.querySelectorAll("[data-until]");
  const tick = () => {
    for (const element of countdowns) {
      const left = Math.max(0, Math.floor((Date.parse(element.dataset.until) - Date.now()) / 1000));
      const text = words(left);
      if (element.textContent !== text) element.textContent = text;
    }
  };
  if (countdowns.length) setInterval(tick, 1000);

  // Nobody loses what they are writing, or their place in a list that is open.
  const every = Number(document.body.dataset.refresh || 0) * 1000;
  let touched = false;
  document.addEventListener("input", () => { touched = true; });
  const busy = () => touched || document.hidden || document.querySelector("details[open]");
  if (every) {
    setInterval(() => {
      // Without the fragment and as a GET, so that nothing is ever sent twice.
      if (!busy()) location.replace(location.pathname + location.search);
    }, every);
  }
})();
