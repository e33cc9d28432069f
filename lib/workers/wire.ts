/** Calls between two isolates: what one of them offers, the other calls as if it were its own. */
import { turn } from "../scheduler.ts";
import { Stop, type StopSignal } from "../stop.ts";
import { packThrown, type Thrown, unpackThrown } from "./thrown.ts";

/** Where messages go to and come from: a worker, or its global scope. */
export interface Port {
  postMessage(message: unknown): void;
  onmessage: ((event: MessageEvent) => void) | null;
}

/** What can be called from elsewhere: its methods. */
export type Offer = object;

/** Names of the methods of an offer. */
type MethodOf<T extends Offer> = {
  [Name in keyof T]-?: T[Name] extends (...args: never[]) => unknown ? Name : never;
}[keyof T];

/** Every method of an offer by its name, so that none is forgotten; what is no method is not on the other side. */
export type Methods<T extends Offer> = Readonly<Record<MethodOf<T>, true>>;

/** An offer as the other side has it. */
export type Remote<T extends Offer> = Pick<T, MethodOf<T>>;

/** The methods of an offer for which nobody waits. */
export type Told<T extends Offer> = {
  [Name in MethodOf<T>]: T[Name] extends (...args: infer Args) => unknown ? (...args: Args) => void : never;
};

/** An offer: the name that both sides know it by, and its methods. */
export interface Desk<T extends Offer> {
  readonly name: string;
  readonly methods: Methods<T>;
}

/** Names an offer. */
export function deskOf<T extends Offer>(name: string, methods: Methods<T>): Desk<T> {
  return { name, methods };
}

/** A port on which both sides call each other. Calls and answers come in the order they were sent. */
export interface Wire {
  /** Offers the methods of an object. @param instead methods in the place of its own */
  offer<T extends Offer>(desk: Desk<T>, target: Remote<T>, instead?: Partial<Remote<T>>): void;
  /**
   * What the other side offers: methods that give promises. They reject with what was thrown there, and with the reason of
   * `close`. A signal that is given last has one over there given up with it, for another reason; so does `close` there.
   */
  remote<T extends Offer>(desk: Desk<T>): Remote<T>;
  /** The same, for calls whose outcome nobody wants to know. */
  told<T extends Offer>(desk: Desk<T>): Told<T>;
  /** Calls nothing and answers nothing any more. Whoever waits for an answer gets the reason. */
  close(reason: Error): void;
}

/** What goes over a wire. A call without an id is not answered. */
type Message =
  | {
    type: "call";
    id?: number;
    name: string;
    method: string;
    args: unknown[];
    /** It has a signal, too. */
    stops?: true;
  }
  /** Whoever made the call has given it up. */
  | { type: "stop"; id: number }
  /** The beginning, or more, of a list that is too long to be sent at once; the rest of it comes with `done`. */
  | { type: "part"; id: number; items: unknown[] }
  | { type: "done"; id: number; value: unknown }
  | { type: "failed"; id: number; thrown: Thrown };

/** Items of a list that go at once: to copy them, here and there, is a few milliseconds of work. */
const ITEMS_AT_ONCE = 1000;

/** A message on its way, and what is to be done where it cannot be sent. */
interface Letter {
  message: Message;
  refused: (cause: unknown) => void;
}

type Method = (...args: unknown[]) => unknown;

/** Opens a wire over a port that nobody else listens to. */
export function openWire(port: Port): Wire {
  const offers = new Map<string, { methods: object; target: Offer; instead: Offer }>();
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  /** What came so far of lists that are the answers to calls. */
  const begun = new Map<number, unknown[]>();
  /** Signals of calls of the other side. */
  const stops = new Map<number, Stop>();
  let count = 0;
  let closed: Error | undefined;

  /** Messages of this turn of the event loop. */
  let outbox: Letter[] = [];

  function post(message: Message, refused: (cause: unknown) => void = () => {}): void {
    if (closed !== undefined) return;
    outbox.push({ message, refused });
    if (outbox.length === 1) queueMicrotask(send);
  }

  /** To wake the other side costs more than a message. */
  function send(): void {
    const letters = outbox;
    outbox = [];
    if (closed !== undefined) return;
    try {
      port.postMessage(letters.map(({ message }) => message));
    } catch {
      // One of them holds something that cannot be sent: the others go without it.
      for (const { message, refused } of letters) {
        try {
          port.postMessage([message]);
        } catch (cause) {
          refused(cause);
        }
      }
    }
  }

  function call(name: string, method: string, args: unknown[]): Promise<unknown> {
    if (closed !== undefined) return Promise.reject(closed);
    const id = count++;
    const answer = Promise.withResolvers<unknown>();
    waiting.set(id, answer);
    const refused = (cause: unknown) => settle(id, ({ reject }) => reject(cause));
    const signal = args.at(-1);
    if (!isStopSignal(signal)) {
      post({ type: "call", id, name, method, args }, refused);
      return answer.promise;
    }
    post({ type: "call", id, name, method, args: args.slice(0, -1), stops: true }, refused);
    const stop = { handleEvent: () => post({ type: "stop", id }) };
    if (signal.aborted) stop.handleEvent();
    else signal.addEventListener("abort", stop);
    return answer.promise.finally(() => signal.removeEventListener("abort", stop));
  }

  async function answer({ id, name, method, args, stops: hasStop }: Message & { type: "call" }): Promise<void> {
    const fail = (thrown: unknown) => {
      if (id !== undefined) post({ type: "failed", id, thrown: packThrown(thrown) });
    };
    if (id !== undefined && hasStop === true) {
      const stop = new Stop();
      stops.set(id, stop);
      args.push(stop);
    }
    try {
      const value = await find(name, method)(...args);
      if (id === undefined) return;
      const isLong = Array.isArray(value) && value.length > ITEMS_AT_ONCE;
      post({ type: "done", id, value: isLong ? await sendParts(value, { id, fail }) : value }, fail);
    } catch (thrown) {
      fail(thrown);
    } finally {
      if (id !== undefined) stops.delete(id);
    }
  }

  /** Sends all of a list but its end, with turns for others between. Returns what is still to be sent. */
  async function sendParts(
    value: unknown[],
    { id, fail }: { id: number; fail: (cause: unknown) => void },
  ): Promise<unknown[]> {
    let isRefused = false;
    const refused = (cause: unknown) => {
      isRefused = true;
      fail(cause);
    };
    let at = 0;
    for (; !isRefused && value.length - at > ITEMS_AT_ONCE; at += ITEMS_AT_ONCE) {
      post({ type: "part", id, items: value.slice(at, at + ITEMS_AT_ONCE) }, refused);
      await turn();
    }
    return value.slice(at);
  }

  function find(name: string, method: string): Method {
    const { methods, target, instead } = offers.get(name) ?? { methods: {}, target: {}, instead: {} };
    const from = Object.hasOwn(instead, method) ? instead : target;
    const found: unknown = Object.hasOwn(methods, method) ? Reflect.get(from, method) : undefined;
    if (typeof found === "function") return found.bind(from);
    throw new TypeError(`Cannot call "${name}.${method}": it is not offered`);
  }

  function settle(id: number, act: (answer: PromiseWithResolvers<unknown>) => void): void {
    const answer = waiting.get(id);
    waiting.delete(id);
    begun.delete(id);
    if (answer !== undefined) act(answer);
  }

  function take(message: Message): void {
    if (message.type === "call") void answer(message);
    else if (message.type === "stop") stops.get(message.id)?.abort();
    else if (message.type === "part") begin(message);
    else if (message.type === "done") finish(message);
    else settle(message.id, ({ reject }) => reject(unpackThrown(message.thrown)));
  }

  function begin({ id, items }: Message & { type: "part" }): void {
    if (!waiting.has(id)) return;
    const before = begun.get(id);
    if (before === undefined) begun.set(id, items);
    else before.push(...items);
  }

  function finish({ id, value }: Message & { type: "done" }): void {
    const before = begun.get(id);
    if (before !== undefined && Array.isArray(value)) before.push(...value);
    settle(id, ({ resolve }) => resolve(before ?? value));
  }

  port.onmessage = ({ data }: MessageEvent<Message[]>) => {
    if (closed === undefined) data.forEach(take);
  };

  return {
    offer({ name, methods }, target, instead = {}) {
      offers.set(name, { methods, target, instead });
    },
    remote: <T extends Offer>({ name, methods }: Desk<T>) =>
      stubs(methods, (method, args) => call(name, method, args)) as Remote<T>,
    told: <T extends Offer>({ name, methods }: Desk<T>) =>
      stubs(methods, (method, args) => post({ type: "call", name, method, args })) as Told<T>,
    close(reason) {
      closed ??= reason;
      for (const { reject } of waiting.values()) reject(reason);
      waiting.clear();
      begun.clear();
      for (const stop of stops.values()) stop.abort(reason);
    },
  };
}

function isStopSignal(value: unknown): value is StopSignal {
  return value instanceof Stop || value instanceof AbortSignal;
}

function stubs(methods: object, call: (method: string, args: unknown[]) => unknown): Record<string, Method> {
  return Object.fromEntries(
    Object.keys(methods).map((method) => [method, (...args: unknown[]) => call(method, args)]),
  );
}
