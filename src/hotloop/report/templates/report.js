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
  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const fileName = (title, suffix) =>
    `${title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "hotloop"}.${suffix}`;
  // A picture on its own has no style sheet: what the page's one made of it is written into it.
  const COPIED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap",
    "stroke-linejoin", "opacity", "font-family", "font-size", "font-weight"];
  const standalone = (picture) => {
    const copy = picture.cloneNode(true);
    const [from, to] = [picture, copy].map((one) => [one, ...one.querySelectorAll("*")]);
    from.forEach((one, i) => {
      const style = getComputedStyle(one);
      for (const name of COPIED) to[i].setAttribute(name, style.getPropertyValue(name));
      to[i].removeAttribute("class");
    });
    const box = picture.viewBox.baseVal;
    copy.setAttribute("width", box.width);
    copy.setAttribute("height", box.height);
    const back = document.createElementNS(picture.namespaceURI, "rect");
    back.setAttribute("width", box.width);
    back.setAttribute("height", box.height);
    back.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
    copy.prepend(back);
    return { text: new XMLSerializer().serializeToString(copy), box };
  };
  const savePng = (picture, title) => {
    const { text, box } = standalone(picture);
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [box.width * 3, box.height * 3];
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(blob, fileName(title, "png")), "image/png");
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  };
  const csv = (table) =>
    [...table.rows]
      .map((row) =>
        [...row.cells]
          .map((cell) => cell.textContent.trim())
          // A cell that a spreadsheet would run as a formula is text for it, numbers stay numbers.
          .map((text) => (/^[=+\-@]/.test(text) && isNaN(Number(text)) ? `'${text}` : text))
          .map((text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text))
          .join(","),
      )
      .join("\r\n") + "\r\n";
  const button = (label, about, work) => {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "save";
    made.textContent = label;
    made.setAttribute("aria-label", `${label} of ${about}`);
    made.addEventListener("click", work);
    return made;
  };
  for (const figure of document.querySelectorAll("figure")) {
    const picture = figure.querySelector(".picture svg");
    if (!picture) continue;
    const title = figure.querySelector("figcaption").textContent;
    const svg = () => save(new Blob([standalone(picture).text], { type: "image/svg+xml" }),
      fileName(title, "svg"));
    figure.querySelector("figcaption").append(
      button("SVG", title, svg), button("PNG", title, () => savePng(picture, title)));
  }
  for (const region of document.querySelectorAll(".scroll[aria-label]")) {
    const table = region.querySelector("table");
    if (!table) continue;
    const title = region.getAttribute("aria-label");
    region.before(button("CSV", title, () =>
      save(new Blob([csv(table)], { type: "text/csv" }), fileName(title, "csv"))));
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
