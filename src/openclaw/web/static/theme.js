/* Before the first paint: light or dark as chosen here, or else as the system has it. Not a module, so that it runs first. */
(function () {
  try {
    const chosen = localStorage.getItem("openclaw.theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    /* without storage the system decides */
  }
})();
