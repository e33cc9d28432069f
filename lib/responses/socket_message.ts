/** Reads the clients' WebSocket messages, and writes errors as messages. */
import {
  findValue,
  JSON_LIMITS,
  JsonError,
  type ObjectText,
  parseDocument,
  scanMembers,
  spliceMembers,
} from "../json/mod.ts";
import { GatewayError } from "../errors.ts";
import { openaiErrorReply } from "../protocols/error_bodies.ts";

/** A `response.create` message. */
export interface CreateMessage {
  /** Id of the stream of this message and its events; undefined for the connection's default stream. */
  streamId: string | undefined;
  /** False for a warm-up, which only stores the input and returns an id. */
  generate: boolean;
  /** The body of the request, with `stream: true`. */
  body: string;
}

/** A client's message. */
export interface ClientMessage {
  /** Type of the message; undefined if it has none. */
  type: string | undefined;
  /** As in `CreateMessage`. */
  streamId: string | undefined;
  /** The request; absent unless the type is `response.create`. */
  create?: CreateMessage;
}

/**
 * Reads a message without parsing all of it. The request parses it later, with all limits.
 * @throws {GatewayError} `invalid` for more members than a body may have
 */
export function readMessage(text: string): ClientMessage {
  const { keys } = JSON_LIMITS;
  const scanned = scanMembers(text, keys + 1);
  if (scanned.members.length > keys) {
    throw new GatewayError("invalid", `Cannot read the message: it has more than ${keys} members`);
  }
  return toMessage(scanned);
}

/**
 * Reads a long message in slices. Reading 32 million characters at once would take 100 ms.
 * @throws {GatewayError} `invalid` for text that is not JSON, or exceeds the limits of a body
 */
export async function readLongMessage(text: string): Promise<ClientMessage> {
  try {
    return toMessage(await parseDocument(text));
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause;
    throw new GatewayError("invalid", `Cannot read the message as JSON: ${cause.message}`, { cause });
  }
}

function toMessage(scanned: ObjectText): ClientMessage {
  const { text } = scanned;
  const valueOf = (wantedName: string): string | undefined => {
    const member = scanned.members.findLast(({ name }) => name === wantedName);
    return member && text.slice(member.start, member.end);
  };
  const type = stringIn(valueOf("type"));
  const streamId = stringIn(valueOf("stream_id"));
  if (type !== "response.create") return { type, streamId };
  const edits = { type: undefined, stream_id: undefined, generate: undefined, stream: "true" };
  const create = { streamId, generate: valueOf("generate") !== "false", body: spliceMembers(scanned, edits) };
  return { type, streamId, create };
}

/** Headers that the client gets with an error: retries, limits and the request id. */
const SENT_HEADERS = /^(?:retry-after(?:-ms)?|x-request-id|x-ratelimit-.*)$/;

/**
 * Writes an error response as a message. The headers are in two places, because OpenAI's types have them inside the
 * error, and Codex reads them beside it.
 */
export async function writeErrorMessage(response: Response): Promise<string> {
  const text = await response.text();
  const span = findValue(text, ["error"]);
  const sent = [...response.headers].filter(([name]) => SENT_HEADERS.test(name));
  const headers = JSON.stringify(Object.fromEntries(sent));
  const error = span === undefined ? "{}" : spliceMembers(text.slice(span.start, span.end), { headers });
  return `{"type":"error","status":${response.status},"error":${error},"headers":${headers}}`;
}

/** Writes the error for a message that is not a request. */
export function writeMessageError(error: GatewayError): string {
  const { status, body } = openaiErrorReply(error, "");
  return JSON.stringify({ type: "error", status, error: body.error ?? null });
}

/** Adds the stream id to an event. */
export function withStreamId(event: string, streamId: string | undefined): string {
  return streamId === undefined ? event : spliceMembers(event, { stream_id: JSON.stringify(streamId) });
}

function stringIn(json: string | undefined): string | undefined {
  return json === undefined ? undefined : /^"([^"\\]{1,256})"$/.exec(json)?.[1];
}
