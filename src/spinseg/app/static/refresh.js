// Keeps one answer of the server fresh: asked at once, then about once a second while sweeps go on.

const PAUSE = 1000;
const NOT_NOW = [409, 422]; // no sweep yet, or sites that have just been replaced
const TOLD_BY_THE_STREAM = [0, 404]; // no connection, no such page

export class Refresh {
  // `changed` is called when `answer`, {kind, data} or null, is another one; `failed` with an Error.
  constructor(changed, failed) {
    this.changed = changed;
    this.failed = failed;
    this.answer = null;
  }

  // `key` names the question, so that asking the same again changes nothing; without `ask` there is none.
  want(key, kind, ask) {
    if (key === this.key) return;
    if (kind !== this.kind) this.answer = null;
    Object.assign(this, { key, kind, ask, due: 0, asked: null });
    this.look();
  }

  // `moment` is another one whenever the answer may be, and null while there can be none.
  happened(moment) {
    this.moment = moment;
    if (moment === null) this.answer = null;
    else this.look();
  }

  // Asks nothing while `work` goes on, nor before something happens after it: answers would be of what is no more.
  async restDuring(work) {
    this.resting = true;
    clearTimeout(this.timer);
    await work;
    this.resting = false;
  }

  look() {
    clearTimeout(this.timer);
    if (this.resting || !this.ask || this.busy || !this.moment || this.asked === this.moment) return;
    this.timer = setTimeout(() => this.question(), Math.max(0, this.due - performance.now()));
  }

  async question() {
    const { key, kind, moment } = this;
    this.busy = true;
    try {
      const data = await this.ask();
      if (key === this.key) this.tell({ kind, data });
    } catch (error) {
      if (NOT_NOW.includes(error.status)) this.tell(null);
      else if (!TOLD_BY_THE_STREAM.includes(error.status)) this.failed(error);
    }
    this.busy = false;
    if (key === this.key) Object.assign(this, { asked: moment, due: performance.now() + PAUSE });
    this.look();
  }

  tell(answer) {
    this.answer = answer;
    this.changed();
  }
}
