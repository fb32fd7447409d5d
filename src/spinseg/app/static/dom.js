// Short hands for elements: find one by its id, make one with properties and children.

export const byId = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// Writing what is there already would still make the browser lay the page out again.
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const onScheme = (changed) => matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
export const cssColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
