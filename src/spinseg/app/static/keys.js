// Keys of the whole page; fields, buttons and lists keep their own.

const OWN_ALL = "input:not([type=range], [type=radio], [type=checkbox]), select, textarea";
const OWN_SPACE = `${OWN_ALL}, input, button, summary, a, pre`;

// `ready` says whether keys mean anything now.
export function listenToKeys(actions, ready) {
  addEventListener("keydown", (event) => {
    const action = actions[event.key];
    if (!action || !ready() || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.key !== "Escape" && event.target.matches(event.key === " " ? OWN_SPACE : OWN_ALL)) return;
    event.preventDefault();
    action();
  });
}
