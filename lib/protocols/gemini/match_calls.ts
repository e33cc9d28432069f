/** A call, and whether a result can still belong to it. */
interface Call {
  id: string;
  name: string;
  isOpen: boolean;
}

/** Calls in their order. All before `next` have a result. */
interface CallQueue {
  calls: Call[];
  next: number;
}

/** Queues by id or by name. A request may have tens of thousands of calls, so none is searched for. */
type CallQueues = Map<string, CallQueue>;

/** Gives ids to calls and results, which Gemini matches by name and order where they have none. */
export class CallMatcher {
  readonly #ids = new Set<string>();
  /** Calls of the last content of the model. */
  #byId: CallQueues = new Map();
  #byName: CallQueues = new Map();
  #count = 0;

  /** Begins a content of the model. Calls of earlier ones get no results any more. */
  beginTurn(): void {
    this.#byId = new Map();
    this.#byName = new Map();
  }

  /** Returns the id of a call. */
  begin(name: string, wireId: string | undefined): string {
    this.#count++;
    let id = wireId ?? `call_${this.#count}`;
    for (let attempt = 1; wireId === undefined && this.#ids.has(id); attempt++) id = `call_${this.#count}_${attempt}`;
    this.#ids.add(id);
    const call = { id, name, isOpen: true };
    add(this.#byId, id, call);
    add(this.#byName, name, call);
    return id;
  }

  /** Returns the id of the call that a result belongs to; one of no call if there is none. */
  end(name: string, wireId: string | undefined): string {
    const call = first(wireId === undefined ? undefined : this.#byId.get(wireId)) ?? first(this.#byName.get(name));
    if (call === undefined) return wireId ?? "";
    call.isOpen = false;
    return call.id;
  }
}

function add(queues: CallQueues, key: string, call: Call): void {
  const queue = queues.get(key);
  if (queue === undefined) queues.set(key, { calls: [call], next: 0 });
  else queue.calls.push(call);
}

/** The first open call. */
function first(queue: CallQueue | undefined): Call | undefined {
  if (queue === undefined) return undefined;
  while (queue.calls[queue.next]?.isOpen === false) queue.next++;
  return queue.calls[queue.next];
}
