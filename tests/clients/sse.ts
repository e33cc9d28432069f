/** Requests as bytes, and streams as they arrive. */
import type { Gateway } from "./gateway.ts";

/** One message of a stream: the lines between two blank ones. */
export interface Message {
  event: string | undefined;
  /** Text after `data: `. */
  data: string;
}

/** Any JSON object. */
export type Body = Record<string, unknown>;

/** Headers that the messages protocol asks for. */
export const VERSION = { "anthropic-version": "2023-06-01" };

/** Sends a JSON body, with the gateway's key as a bearer token unless other headers are given. */
export function post(
  { url, key }: Gateway,
  path: string,
  body: Body,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}

/** Reads a stream to its end. Any line that is neither an event line nor a data line is an error. */
export async function readMessages(response: Response): Promise<Message[]> {
  const type = response.headers.get("content-type");
  const text = await response.text();
  if (response.status !== 200 || type?.split(";")[0] !== "text/event-stream" || !text.endsWith("\n\n")) {
    throw new Error(`Expected a whole event stream, got ${response.status} ${type}:\n${text}`);
  }
  return text.slice(0, -2).split("\n\n").map((message) => {
    const [, event, data] = /^(?:event: (\S+)\n)?data: (.+)$/.exec(message) ?? [];
    if (data === undefined) throw new Error(`Expected one event line at most and one data line, got ${message}`);
    return { event, data };
  });
}

/** The data of messages that hold JSON. */
export function parsed(messages: readonly Message[]): Body[] {
  return messages.map(({ data }) => JSON.parse(data));
}

/** An answer that must be whole. */
export async function readBody(response: Response): Promise<Body> {
  const text = await response.text();
  if (response.status !== 200) throw new Error(`Expected an answer, got ${response.status}:\n${text}`);
  return JSON.parse(text);
}
