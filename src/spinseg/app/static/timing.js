// Work that must not be done too often.

// Done after a rest of `delay` milliseconds, once at a time; what was asked for meanwhile is done once more after it.
export function settled(work, delay) {
  let timer, busy, again;
  const go = async () => {
    if (busy) return void (again = true);
    busy = true;
    await work();
    busy = false;
    if (!again) return;
    again = false;
    go();
  };
  return () => {
    clearTimeout(timer);
    timer = setTimeout(go, delay);
  };
}

// Done at most once in `interval` milliseconds, and always after the last call.
export function atMostEvery(interval, work) {
  let timer = null;
  return () => {
    timer ??= setTimeout(() => {
      timer = null;
      work();
    }, interval);
  };
}
