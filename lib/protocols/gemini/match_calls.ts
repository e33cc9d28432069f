/** Gives ids to tool calls, and finds the call of each result by id, or by name and order. */

/** A call. It is open until a result belongs to it. */
interface Call {
  id: string;
  name: string;
  isOpen: boolean;
}

/** Calls in their order. All calls before the index `next` have a result. */
interface CallQueue {
  calls: Call[];
  next: number;
}

/** Queues by id or by name. They avoid searches, because a request may have tens of thousands of calls. */
type CallQueues = Map<string, CallQueue>;

/** Gives ids to the calls and results of one request. Gemini matches those without ids by name and order. */
export class CallMatcher {
  readonly #ids = new Set<string>();
  /** Calls of the last content of the model. */
  #byId: CallQueues = new Map();
  #byName: CallQueues = new Map();
  #count = 0;

  /** Begins a content of the model. Later results belong to its calls, not to earlier ones. */
  beginTurn(): void {
    this.#byId = new Map();
    this.#byName = new Map();
  }

  /** Returns the id of a call: the given one, or a new one. */
  begin(name: string, given: string | undefined): string {
    this.#count++;
    let id = given ?? `call_${this.#count}`;
    for (let suffix = 1; given === undefined && this.#ids.has(id); suffix++) id = `call_${this.#count}_${suffix}`;
    this.#ids.add(id);
    const call = { id, name, isOpen: true };
    addCall(this.#byId, id, call);
    addCall(this.#byName, name, call);
    return id;
  }

  /** Returns the id of the call to which a result belongs. If there is none, it is the given id, or "". */
  end(name: string, given: string | undefined): string {
    const call = firstOpen(given === undefined ? undefined : this.#byId.get(given)) ??
      firstOpen(this.#byName.get(name));
    if (call === undefined) return given ?? "";
    call.isOpen = false;
    return call.id;
  }
}

function addCall(queues: CallQueues, key: string, call: Call): void {
  const queue = queues.get(key);
  if (queue === undefined) queues.set(key, { calls: [call], next: 0 });
  else queue.calls.push(call);
}

function firstOpen(queue: CallQueue | undefined): Call | undefined {
  if (queue === undefined) return undefined;
  while (queue.calls[queue.next]?.isOpen === false) queue.next++;
  return queue.calls[queue.next];
}
