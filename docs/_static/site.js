// A click on a figure shows it as large as the window allows; Escape or another click closes it.
document.addEventListener("DOMContentLoaded", () => {
  const dialog = document.createElement("dialog");
  dialog.className = "enlarged";
  dialog.setAttribute("aria-label", "Enlarged figure");
  dialog.addEventListener("click", () => dialog.close());
  // Under this theme Escape does not close the dialog by itself.
  document.addEventListener("keydown", (event) => event.key === "Escape" && dialog.close(), true);
  document.body.append(dialog);
  for (const image of document.querySelectorAll(".bd-article figure img, .bd-article img.sphx-glr-single-img")) {
    if (image.closest("a")) continue;
    const link = document.createElement("a");
    link.href = image.src;
    link.className = "enlarge";
    link.title = "Enlarge";
    image.replaceWith(link);
    link.append(image);
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      const large = document.createElement("img");
      large.src = image.src;
      large.alt = image.alt;
      dialog.replaceChildren(large);
      dialog.showModal();
    });
  }
});

// What the theme leaves out for keyboards and screen readers.
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll(".search-button-field")) {
    button.setAttribute("aria-label", button.textContent.replace(/\s+/g, " ").trim());
  }
  for (const summary of document.querySelectorAll(".bd-sidebar-primary summary")) {
    summary.setAttribute("aria-label", `Pages below ${summary.parentElement.previousElementSibling?.textContent.trim() ?? "this one"}`);
  }
  for (const table of document.querySelectorAll(".bd-article table")) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
  }
});
