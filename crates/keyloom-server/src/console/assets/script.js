// What pages can do besides: nothing of it is needed.
(() => {
  "use strict";
  const root = document.documentElement;
  const themes = ["auto", "light", "dark"];
  const kept = () => {
    try {
      return localStorage.getItem("keyloom-theme");
    } catch {
      return null;
    }
  };
  const wear = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  // Before anything is drawn, so that nothing flashes.
  wear(kept());
  root.classList.add("scripted");

  const ready = () => {
    const button = document.getElementById("theme");
    if (button) {
      const tell = () => {
        button.textContent = `Theme: ${root.dataset.theme ?? "auto"}`;
      };
      button.hidden = false;
      tell();
      button.addEventListener("click", () => {
        const now = themes.indexOf(root.dataset.theme ?? "auto");
        const next = themes[(now + 1) % themes.length];
        wear(next);
        try {
          localStorage.setItem("keyloom-theme", next);
        } catch {
          // Without storage it holds for this page.
        }
        tell();
      });
    }
    for (const select of document.querySelectorAll("select[data-submit]")) {
      select.addEventListener("change", () => select.form.requestSubmit());
    }
    // Forms that ask leave out what is empty, for short addresses.
    for (const form of document.querySelectorAll("form:not([method=post])")) {
      form.addEventListener("formdata", (event) => {
        const data = event.formData;
        for (const [name, value] of [...data]) if (value === "") data.delete(name);
      });
    }
    document.addEventListener("keydown", (event) => {
      const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
      if (event.key === "/" && !isTyping && isPlain) {
        const search = document.getElementById("search");
        if (search) {
          event.preventDefault();
          search.focus();
          search.select();
        }
      }
      const editor = event.target.closest("textarea");
      if (editor && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        editor.form.requestSubmit();
      }
    });
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", ready);
  else ready();
})();
