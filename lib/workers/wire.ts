/** Calls between two isolates: what one of them offers, the other calls as if it were its own. */
import { packThrown, type Thrown, unpackThrown } from "./thrown.ts";

/** Where messages go to and come from: a worker, or its global scope. */
export interface Port {
  postMessage(message: unknown): void;
  onmessage: ((event: MessageEvent) => void) | null;
}

/** What can be called from elsewhere: its methods. */
export type Offer = object;

/** The methods of an offer for which nobody waits. */
export type Told<T extends Offer> = {
  [Name in keyof T]: T[Name] extends (...args: infer Args) => unknown ? (...args: Args) => void : never;
};

/** A port on which both sides call each other. Calls and answers come in the order they were sent. */
export interface Wire {
  /** Offers the methods of an object. @param instead methods in the place of its own */
  offer<T extends Offer>(name: string, target: T, instead?: Partial<T>): void;
  /**
   * What the other side offers under a name: methods that give promises, and no other members. They reject with what was
   * thrown there, and with the reason of `close`.
   */
  remote<T extends Offer>(name: string): T;
  /** The same, for calls whose outcome nobody wants to know. */
  told<T extends Offer>(name: string): Told<T>;
  /** Calls nothing and answers nothing any more. Whoever waits for an answer gets the reason. */
  close(reason: Error): void;
}

/** What goes over a wire. A call without an id is not answered. */
type Message =
  | { type: "call"; id?: number; name: string; method: string; args: unknown[] }
  | { type: "done"; id: number; value: unknown }
  | { type: "failed"; id: number; thrown: Thrown };

type Method = (...args: unknown[]) => unknown;

/** Opens a wire over a port that nobody else listens to. */
export function openWire(port: Port): Wire {
  const offers = new Map<string, { target: Offer; instead: Offer }>();
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  let count = 0;
  let closed: Error | undefined;

  function post(message: Message): void {
    if (closed === undefined) port.postMessage(message);
  }

  function call(name: string, method: string, args: unknown[]): Promise<unknown> {
    if (closed !== undefined) return Promise.reject(closed);
    const id = count++;
    const answer = Promise.withResolvers<unknown>();
    waiting.set(id, answer);
    try {
      post({ type: "call", id, name, method, args });
    } catch (cause) {
      // It holds something that cannot be sent.
      waiting.delete(id);
      answer.reject(cause);
    }
    return answer.promise;
  }

  async function answer({ id, name, method, args }: Message & { type: "call" }): Promise<void> {
    try {
      const value = await find(name, method)(...args);
      if (id !== undefined) post({ type: "done", id, value });
    } catch (thrown) {
      if (id !== undefined) post({ type: "failed", id, thrown: packThrown(thrown) });
    }
  }

  function find(name: string, method: string): Method {
    const { target, instead } = offers.get(name) ?? { target: {}, instead: {} };
    const own: unknown = Reflect.get(instead, method);
    if (typeof own === "function") return own.bind(instead);
    const found: unknown = Reflect.get(target, method);
    if (typeof found === "function") return found.bind(target);
    throw new TypeError(`Cannot call "${name}.${method}": it is not offered`);
  }

  function settle(id: number, act: (answer: PromiseWithResolvers<unknown>) => void): void {
    const answer = waiting.get(id);
    waiting.delete(id);
    if (answer !== undefined) act(answer);
  }

  port.onmessage = ({ data }: MessageEvent<Message>) => {
    if (closed !== undefined) return;
    if (data.type === "call") void answer(data);
    else if (data.type === "done") settle(data.id, ({ resolve }) => resolve(data.value));
    else settle(data.id, ({ reject }) => reject(unpackThrown(data.thrown)));
  };

  return {
    offer(name, target, instead = {}) {
      offers.set(name, { target, instead });
    },
    remote: <T extends Offer>(name: string) => methods<T>((method, args) => call(name, method, args)),
    told: <T extends Offer>(name: string) =>
      methods<Told<T>>((method, args) => post({ type: "call", name, method, args })),
    close(reason) {
      closed ??= reason;
      for (const { reject } of waiting.values()) reject(reason);
      waiting.clear();
    },
  };
}

/** An object that has every method. It is no promise, and has no symbols. */
function methods<T extends object>(call: (method: string, args: unknown[]) => unknown): T {
  const made = new Map<string, Method>();
  return new Proxy({} as T, {
    get(_target, name) {
      if (typeof name === "symbol" || name === "then") return undefined;
      let method = made.get(name);
      if (method === undefined) made.set(name, method = (...args) => call(name, args));
      return method;
    },
  });
}
