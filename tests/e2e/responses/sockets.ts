/** A client of WebSockets on `/v1/responses`. */
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { TestGateway } from "../../support/gateway.ts";

// deno-lint-ignore no-explicit-any
export type Event = Record<string, any>;

const TERMINAL = ["response.completed", "response.incomplete", "response.failed"];

/** An open connection. */
export class TestSocket implements Disposable {
  readonly #socket: WebSocket;
  readonly #messages: string[] = [];
  readonly closed: Promise<CloseEvent>;
  #wake = () => {};

  constructor(socket: WebSocket) {
    this.#socket = socket;
    this.closed = new Promise((resolve) =>
      socket.onclose = (event) => {
        resolve(event);
        this.#wake();
      }
    );
    socket.onmessage = ({ data }) => {
      this.#messages.push(data);
      this.#wake();
    };
    socket.onerror = () => {};
  }

  /** Sends a message, by default a `response.create`. */
  send(message: JsonObject | string | Uint8Array<ArrayBuffer>): void {
    const isRaw = typeof message === "string" || message instanceof Uint8Array;
    this.#socket.send(isRaw ? message : JSON.stringify({ type: "response.create", model: "acme/one", ...message }));
  }

  /** The next message. @throws if the connection closes first */
  async message(): Promise<string> {
    while (this.#messages.length === 0) {
      if (this.#socket.readyState === WebSocket.CLOSED) throw new Error("The connection has closed");
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    return this.#messages.shift() ?? "";
  }

  /** The messages of one answer. */
  async answer(): Promise<string[]> {
    for (const messages: string[] = [];;) {
      const message = await this.message();
      messages.push(message);
      const { type, error } = JSON.parse(message);
      if (TERMINAL.includes(type) || type === "error" && error?.code !== undefined) return messages;
    }
  }

  /** Sends a message and returns the response, or the error. */
  async ask(message: JsonObject): Promise<Event> {
    this.send(message);
    const last = JSON.parse((await this.answer()).at(-1) ?? "{}");
    return last.response ?? last;
  }

  close(): void {
    this.#socket.close();
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }
}

/** Opens a connection. @throws if it is rejected */
export async function openSocket({ url, key }: TestGateway, secret = key.key): Promise<TestSocket> {
  const headers = { authorization: `Bearer ${secret}` };
  // The types of preact bring those of browsers along, whose WebSocket has no headers.
  const WithHeaders = WebSocket as unknown as new (url: string, options: { headers: HeadersInit }) => WebSocket;
  const socket = new WithHeaders(`${url.replace("http", "ws")}/v1/responses`, { headers });
  const opened = new TestSocket(socket);
  await new Promise<void>((resolve, reject) => {
    socket.onopen = () => resolve();
    void opened.closed.then(() => reject(new Error("The connection was refused")));
  });
  return opened;
}
