"use strict";
// Keeps an open page as the server would send it now. The server says only that something is new
// (EventSource); the page then asks for itself again and takes over the parts that changed.
// Without this script every page works; it is then as it was when it was opened.
(() => {
  const body = document.body;
  const sign = document.getElementById("live");
  let source = null;
  let isAsking = false;
  let isStale = false;

  const say = (text, css) => {
    sign.textContent = text;
    sign.className = `live ${css}`;
  };

  const byHref = (part, href) =>
    [...part.querySelectorAll("a[href]")].find((a) => a.getAttribute("href") === href);

  // Makes a fresh part look as the reader has the old one, so that both can be compared.
  const carryOver = (old, fresh) => {
    for (const row of old.querySelectorAll("tr.new")) {
      row.classList.remove("new");
      if (row.className === "") row.removeAttribute("class");
    }
    for (const details of old.querySelectorAll("details[id]")) {
      const twin = fresh.querySelector(`#${CSS.escape(details.id)}`);
      if (twin) twin.open = details.open;
    }
  };

  const markNewRows = (old, fresh) => {
    const known = new Set([...old.querySelectorAll("tr[id]")].map((row) => row.id));
    if (known.size === 0) return;
    for (const row of fresh.querySelectorAll("tr[id]")) {
      if (!known.has(row.id)) row.classList.add("new");
    }
  };

  const scrolled = (part) =>
    [...part.querySelectorAll(".scroll, .picture, .code")].map((box) => {
      const atEnd = box.scrollLeft > 0 && box.scrollLeft + box.clientWidth >= box.scrollWidth - 8;
      return [box.scrollLeft, box.scrollTop, atEnd];
    });

  const scrollBack = (part, places) => {
    [...part.querySelectorAll(".scroll, .picture, .code")].forEach((box, n) => {
      if (!places[n]) return;
      const [left, top, atEnd] = places[n];
      box.scrollLeft = atEnd ? box.scrollWidth : left;
      box.scrollTop = top;
    });
  };

  const replacePart = (old, fresh) => {
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    carryOver(old, fresh);
    if (old.isEqualNode(fresh)) return;
    markNewRows(old, fresh);
    const places = scrolled(old);
    old.replaceChildren(...fresh.childNodes);
    scrollBack(old, places);
    if (focused) {
      const twin = focused.id
        ? document.getElementById(focused.id)
        : byHref(old, focused.getAttribute("href"));
      if (twin) twin.focus({ preventScroll: true });
    }
  };

  const take = (page) => {
    const parts = [...document.querySelectorAll("[data-live]")];
    const fresh = parts.map((part) => page.getElementById(part.id));
    if (parts.length === 0 || fresh.some((part) => part === null)) {
      const main = page.querySelector("main");
      if (main) document.querySelector("main").replaceWith(document.adoptNode(main));
    } else {
      parts.forEach((part, n) => replacePart(part, document.adoptNode(fresh[n])));
    }
    document.title = page.title;
    body.dataset.seen = page.body.dataset.seen || body.dataset.seen;
  };

  const refresh = () => {
    if (isAsking) {
      isStale = true;
      return;
    }
    isAsking = true;
    const ask = new XMLHttpRequest();
    ask.open("GET", location.pathname + location.search);
    ask.responseType = "document";
    ask.onloadend = () => {
      isAsking = false;
      if (ask.response) take(ask.response);
      if (isStale) {
        isStale = false;
        setTimeout(refresh, 200);
      }
    };
    ask.send();
  };

  const listen = () => {
    if (source || !body.dataset.events || document.hidden) return;
    source = new EventSource(`${body.dataset.events}&seen=${body.dataset.seen}`);
    source.onopen = () => say("live", "on");
    source.onerror = () => say("connection lost, trying again", "lost");
    source.addEventListener("changed", refresh);
  };

  const stop = () => {
    if (source) source.close();
    source = null;
  };

  // Browsers keep few connections to one server: a tab that nobody sees gives its own back.
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : listen()));
  addEventListener("pagehide", stop);
  addEventListener("pageshow", listen);

  for (const form of document.querySelectorAll("form.filter")) {
    form.addEventListener("change", (event) => {
      if (event.target.tagName === "SELECT" && isFilled(form)) form.requestSubmit();
    });
  }

  function isFilled(form) {
    const wanted = [...form.querySelectorAll('select[name="a"], select[name="b"]')];
    return wanted.every((select) => select.value !== "");
  }

  for (const graph of document.querySelectorAll("svg.natural")) {
    const box = graph.closest(".picture");
    if (box) box.scrollLeft = box.scrollWidth; // the newest are at the right
  }
  listen();
})();
