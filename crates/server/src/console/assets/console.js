// The console's one script. Without it every page works; with it pages keep up by themselves.
"use strict";
(() => {
  const body = document.body;
  const lang = document.documentElement.lang;

  // Instants in the reader's own zone.
  const exact = new Intl.DateTimeFormat(lang, { dateStyle: "medium", timeStyle: "medium" });
  function localTimes(root) {
    for (const time of root.querySelectorAll("time")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      const text = exact.format(at);
      if (time.classList.contains("exact")) time.textContent = text;
      else time.title = text + "\n" + time.dateTime;
    }
  }

  // An output that is still being printed.
  async function follow(pre) {
    pre.removeAttribute("data-follow-url");
    const response = await fetch(pre.dataset.url);
    if (!response.ok || !response.body) return;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let first = true;
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const atEnd = pre.scrollHeight - pre.scrollTop - pre.clientHeight < 40;
      pre.textContent = (first ? "" : pre.textContent.slice(-200000)) + value;
      first = false;
      if (atEnd) pre.scrollTop = pre.scrollHeight;
    }
    refresh();
  }
  function followAll(root) {
    for (const pre of root.querySelectorAll("pre[data-url]")) {
      if (!pre.dataset.following) {
        pre.dataset.following = "yes";
        follow(pre).catch(() => {});
      }
    }
  }

  // A live page is fetched again after something happened, at most every two seconds.
  let due = 0;
  let busy = false;
  const typing = () => {
    const at = document.activeElement;
    return at && /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName);
  };
  async function refresh() {
    if (busy || document.hidden || typing() || String(getSelection())) return;
    busy = true;
    try {
      const response = await fetch(location.href, { headers: { accept: "text/html" } });
      if (!response.ok || response.redirected) return;
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const fresh = page.querySelector("main");
      const old = document.querySelector("main");
      if (!fresh || !old || typing()) return;
      // An output that is being followed stays where it is.
      for (const pre of old.querySelectorAll("pre[data-following]")) {
        const twin = fresh.querySelector('pre[data-url="' + CSS.escape(pre.dataset.url) + '"]');
        if (twin) twin.replaceWith(pre);
      }
      for (const node of fresh.querySelectorAll(".notice")) node.remove();
      const focused = document.activeElement && document.activeElement.getAttribute("href");
      localTimes(fresh);
      old.replaceChildren(...fresh.childNodes);
      followAll(old);
      if (focused) {
        const again = old.querySelector('[href="' + CSS.escape(focused) + '"]');
        if (again) again.focus({ preventScroll: true });
      }
    } catch (error) {
      // The server is away; the next try may find it.
    } finally {
      busy = false;
    }
  }
  function soon() {
    if (due) return;
    due = setTimeout(() => {
      due = 0;
      refresh();
    }, 2000);
  }

  localTimes(document);
  followAll(document);
  if (body.hasAttribute("data-live")) {
    const sign = document.querySelector(".live");
    const url = "/v1/events?namespace=" + encodeURIComponent(body.dataset.namespace);
    const kinds = ["task.created", "task.changed", "task.finished", "attempt.started", "attempt.ended", "schedule.skipped"];
    let events = null;
    // Browsers allow few connections to one server, so pages in the background let go of theirs.
    function watch() {
      if (document.hidden) {
        if (events) events.close();
        events = null;
      } else if (!events) {
        events = new EventSource(url);
        events.onopen = () => { if (sign) sign.hidden = false; };
        events.onerror = () => { if (sign) sign.hidden = true; };
        for (const kind of kinds) events.addEventListener(kind, soon);
      }
    }
    watch();
    setInterval(refresh, 15000);
    document.addEventListener("visibilitychange", () => {
      watch();
      if (!document.hidden) refresh();
    });
  }
})();
