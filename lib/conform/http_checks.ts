/** Checks shared by all text protocols: streams, headers, errors, and clients that disconnect. */
import { z } from "zod";
import type { JsonObject } from "../json/mod.ts";
import { expectThat, Mismatch, shaped, show, Skip } from "./check.ts";
import { BAD_KEY, LONG, NO_MODEL, READY, UNKNOWN } from "./prompts.ts";
import type { ProtocolChecks, ProtocolClient, VendorErrors } from "./protocol_client.ts";
import { objectOf } from "./sse.ts";
import type { HttpAnswer } from "./suite_context.ts";

/** Size of a body that exceeds the usual limits of gateways, in bytes. */
const LARGE_BYTES = 34 * 1024 * 1024;

const openaiError = z.object({
  error: z.object({
    message: z.string().min(1),
    type: z.string().min(1),
    param: z.string().nullable(),
    code: z.string().nullable(),
  }),
});

const anthropicError = z.object({
  type: z.literal("error"),
  error: z.object({ type: z.string().min(1), message: z.string().min(1) }),
});

/** Expected `error.type` by status. */
const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  404: "not_found_error",
  413: "request_too_large",
};

const googleError = z.object({
  error: z.object({ code: z.number().int(), message: z.string().min(1), status: z.string().min(1) }),
});

/** Expected `error.status` by HTTP status. */
const GOOGLE_STATUSES: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  404: "NOT_FOUND",
  413: "INVALID_ARGUMENT",
};

const JSON_TYPE = /^application\/json\b/;

/** Checks of headers, streams, errors and disconnections for every text protocol. */
export const HTTP_CHECKS: ProtocolChecks = {
  "whole.type": async (client) => checkHeader(await client.readyAnswer(), "content-type", JSON_TYPE),
  "whole.request_id": async (client) => checkRequestId(client, await client.readyAnswer()),
  "stream.type": async (client) =>
    checkHeader((await client.readyStream()).answer, "content-type", /^text\/event-stream\b/),
  "stream.cache": async (client) =>
    checkHeader((await client.readyStream()).answer, "cache-control", /no-cache|no-store/),
  "stream.buffering": async (client) => checkHeader((await client.readyStream()).answer, "x-accel-buffering", /^no$/),
  "stream.request_id": async (client) => checkRequestId(client, (await client.readyStream()).answer),
  async "stream.lines"(client) {
    const { faults, events, comments } = await client.readyStream();
    expectThat(faults.length === 0, "a valid event stream", faults.join("; "));
    const keepAlive = events.find(({ data }) => data.startsWith(":") || data === "");
    expectThat(keepAlive === undefined, "keep-alives as comments, not as data", keepAlive?.data);
    return comments.length === 0 ? undefined : `${comments.length} comments`;
  },
  async "error.key"(client) {
    const answer = await sendWrongKey(client);
    checkError(client.form, answer, [401]);
    expectThat(!answer.text.includes(BAD_KEY), "an error without the key", answer.text);
  },
  "error.no_key": async (client) =>
    checkError(client.form, await client.post({ key: null, body: client.body(READY) }), [401]),
  "error.request_id": async (client) => checkRequestId(client, await sendWrongKey(client)),
  "error.model": async (client) => checkNoModel(client, await sendUnknownModel(client, {})),
  async "error.early"(client) {
    const answer = await sendUnknownModel(client, { stream: true });
    checkNoModel(client, answer);
    checkHeader(answer, "content-type", JSON_TYPE);
  },
  "error.json": async (client) => checkError(client.form, await client.post({ body: '{"model": "' }), [400]),
  "error.member": async (client) =>
    checkError(client.form, await client.post({ body: client.form.incomplete(client.context.subject.model) }), [400]),
  async "error.large"(client) {
    // The model does not exist, so that a gateway without a limit generates nothing.
    const answer = await client.post({
      body: client.body("a".repeat(client.context.subject.largeBytes ?? LARGE_BYTES), { model: NO_MODEL }),
    });
    if ([400, 404].includes(answer.status)) throw new Skip(`no limit was met: the answer was ${answer.status}`);
    checkError(client.form, answer, [413]);
  },
  async "error.method"(client) {
    const answer = await client.post({ method: "PUT", body: "{}" });
    expectThat(answer.status === 405, "status 405", answer.status);
    checkHeader(answer, "allow", /\bPOST\b/);
  },
  async unknown(client) {
    const answer = await client.post({ body: client.body(READY, { [UNKNOWN]: true }) });
    if (answer.status === 400 && answer.text.includes(UNKNOWN)) {
      throw new Skip("it is refused by name, as the vendors' own servers do; newer clients may fail");
    }
    expectThat(answer.status === 200, "status 200", `${answer.status}: ${answer.text}`);
  },
  known: async (client) => void await client.context.good(client.request(client.body(READY, client.form.known))),
  async disconnect(client) {
    const { context } = client;
    const opened = await context.open(client.request(client.body(LONG, { stream: true })));
    expectThat(opened.status === 200 && await opened.first(), "a stream", opened.status);
    opened.disconnect();
    await context.good(client.request(client.body(READY)));
  },
};

function sendUnknownModel(client: ProtocolClient, members: JsonObject): Promise<HttpAnswer> {
  return client.once(
    `no model ${JSON.stringify(members)}`,
    () => client.post({ body: client.body(READY, { model: NO_MODEL, ...members }) }),
  );
}

function checkNoModel({ form }: ProtocolClient, answer: HttpAnswer): void {
  checkError(form, answer, form.part === "messages" || form.part === "gemini" ? [404] : [404, 400]);
}

function sendWrongKey(client: ProtocolClient): Promise<HttpAnswer> {
  return client.once("wrong key", () => client.post({ key: BAD_KEY, body: client.body(READY) }));
}

/** Checks the status and the body of an error. @throws {Mismatch} if one is wrong */
export function checkError(
  { errors }: { errors: VendorErrors },
  { status, text }: HttpAnswer,
  statuses: readonly number[],
): void {
  expectThat(statuses.includes(status), `status ${statuses.join(" or ")}`, `${status}: ${text}`);
  const body = objectOf(text, "the error");
  switch (errors) {
    case "openai":
      return void shaped(openaiError, body, "the error");
    case "anthropic": {
      const { error: { type } } = shaped(anthropicError, body, "the error");
      return expectThat(type === ANTHROPIC_TYPES[status], `error.type "${ANTHROPIC_TYPES[status]}"`, type);
    }
    case "google": {
      const { error } = shaped(googleError, body, "the error");
      expectThat(error.code === status, `error.code ${status}`, error.code);
      expectThat(error.status === GOOGLE_STATUSES[status], `error.status "${GOOGLE_STATUSES[status]}"`, error.status);
    }
  }
}

/** Checks the value of a header by a pattern. @throws {Mismatch} if it is missing or does not match */
export function checkHeader({ header }: HttpAnswer, name: string, form: RegExp): void {
  const value = header(name);
  if (value === null || !form.test(value)) {
    throw new Mismatch(`header ${name} like ${form.source}`, value === null ? "no such header" : show(value));
  }
}

function checkRequestId({ form }: ProtocolClient, answer: HttpAnswer): void {
  checkHeader(answer, form.errors === "anthropic" ? "request-id" : "x-request-id", /^\S+$/);
}
