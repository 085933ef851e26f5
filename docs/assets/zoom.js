// A picture is shown large after a click on it, or Enter or Space; Escape, a click or Enter closes it.

const frame = document.createElement("dialog"), large = document.createElement("img");
frame.className = "zoom";
frame.tabIndex = -1;
frame.append(large);
document.body.append(frame);
frame.addEventListener("click", () => frame.close());
frame.addEventListener("keydown", (event) => {
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    frame.close();
  }
});

function show(picture) {
  large.src = picture.src;
  large.alt = picture.alt;
  frame.setAttribute("aria-label", picture.alt);
  frame.showModal(); // when it closes, the browser gives the focus back to the picture
}

for (const picture of document.querySelectorAll(".md-content img")) {
  if (picture.closest("a")) continue;
  picture.tabIndex = 0;
  picture.classList.add("zooms");
  picture.setAttribute("role", "button");
  picture.setAttribute("aria-label", `Enlarge the picture: ${picture.alt}`);
  picture.addEventListener("click", () => show(picture));
  picture.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    show(picture);
  });
}
