"use strict";
(() => {
  const problems = [...document.querySelectorAll("details.problem")];
  const bar = document.getElementById("filter");
  if (bar) {
    const fields = [...bar.querySelectorAll("[data-filter]")];
    const shown = document.getElementById("shown");
    const fits = (problem, field) => {
      const value = field.value.toLowerCase();
      const name = field.dataset.filter;
      if (name === "text") {
        return value.split(/\s+/).every((word) => problem.dataset.text.includes(word));
      }
      return value === "" || problem.dataset[name].toLowerCase() === value;
    };
    const apply = () => {
      let count = 0;
      for (const problem of problems) {
        problem.hidden = !fields.every((field) => fits(problem, field));
        count += problem.hidden ? 0 : 1;
      }
      shown.textContent = `${count} of ${problems.length} shown`;
    };
    const toggle = (open) => () => {
      for (const problem of problems) {
        if (!open || !problem.hidden) problem.open = open;
      }
    };
    bar.addEventListener("input", apply);
    document.getElementById("open").addEventListener("click", toggle(true));
    document.getElementById("close").addEventListener("click", toggle(false));
    bar.hidden = false;
    apply();
  }
  const follow = () => {
    const target = problems.find((problem) => `#${problem.id}` === location.hash);
    if (target) {
      target.hidden = false;
      target.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", follow);
  follow();
})();
