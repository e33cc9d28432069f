/** Checks shared by all text protocols: streams, headers, errors, and clients that disconnect. */
import { z } from "zod";
import type { JsonObject } from "../json/mod.ts";
import { type Checks, Mismatch, must, shaped, show, Skip, type SuitePart } from "./check.ts";
import type { HttpAnswer, SuiteContext } from "./suite_context.ts";
import { BAD_KEY, LONG, NO_MODEL, READY, UNKNOWN } from "./prompts.ts";
import { DONE, objectOf, type WireStream } from "./sse.ts";

/** The differences of a protocol, for these checks. */
export interface CommonForm {
  part: SuitePart;
  /** The protocol of its error bodies. */
  errors: "openai" | "anthropic";
  /** A request body with this user message. */
  body(context: SuiteContext, words: string, more?: JsonObject): JsonObject;
  /** A body without a required member. */
  incomplete(context: SuiteContext): JsonObject;
  /** Harmless optional members of the official API. */
  known: JsonObject;
}

/** Size of a body beyond any usual limit, in bytes. */
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

/** The checks of errors, headers and behaviour under one protocol. */
export function commonChecks(dialect: CommonForm): Checks {
  const { part } = dialect;
  return {
    "whole.type": async (context) =>
      checkHeader(await wholeOf(dialect, context), "content-type", /^application\/json\b/),
    "whole.request_id": async (context) => checkHeader(await wholeOf(dialect, context), idHeader(dialect), /^\S+$/),
    "stream.type": async (context) =>
      checkHeader((await streamOf(dialect, context)).answer, "content-type", /^text\/event-stream\b/),
    "stream.cache": async (context) =>
      checkHeader((await streamOf(dialect, context)).answer, "cache-control", /no-cache|no-store/),
    "stream.buffering": async (context) =>
      checkHeader((await streamOf(dialect, context)).answer, "x-accel-buffering", /^no$/),
    "stream.request_id": async (context) =>
      checkHeader((await streamOf(dialect, context)).answer, idHeader(dialect), /^\S+$/),
    async "stream.lines"(context) {
      const { faults, events, comments } = await streamOf(dialect, context);
      must(faults.length === 0, { expected: "none of these", seen: faults.join("; ") });
      const odd = events.find(({ data }) => data.startsWith(":") || data === "");
      must(odd === undefined, { expected: "keep-alives as comments, not as data", seen: odd?.data });
      return comments.length === 0 ? undefined : `${comments.length} comments`;
    },
    ...errorChecks(dialect),
    async unknown(context) {
      const answer = await context.ask({
        path: context.path(part),
        body: dialect.body(context, READY, { [UNKNOWN]: true }),
      });
      if (answer.status === 400 && answer.text.includes(UNKNOWN)) {
        throw new Skip("it is refused by name, as the vendors' own servers do; newer clients may fail");
      }
      must(answer.status === 200, { expected: "status 200", seen: `${answer.status}: ${answer.text}` });
    },
    known: async (context) =>
      void await context.good({ path: context.path(part), body: dialect.body(context, READY, dialect.known) }),
    async leave(context) {
      const ask = { path: context.path(part), body: dialect.body(context, LONG, { stream: true }) };
      const opened = await context.open(ask);
      must(opened.status === 200 && await opened.first(), { expected: "a stream", seen: opened.status });
      opened.leave();
      await context.good({ path: ask.path, body: dialect.body(context, READY) });
    },
  };
}

function errorChecks(dialect: CommonForm): Checks {
  const { part } = dialect;
  const early = (context: SuiteContext, more: JsonObject) =>
    context.once(
      `${part} no model ${JSON.stringify(more)}`,
      () =>
        context.ask({ path: context.path(part), body: { ...dialect.body(context, READY), model: NO_MODEL, ...more } }),
    );
  return {
    async "error.key"(context) {
      const answer = await wrongKey(dialect, context);
      checkError(dialect, answer, [401]);
      must(!answer.text.includes(BAD_KEY), { expected: "an error without the key", seen: answer.text });
    },
    "error.no_key": async (context) =>
      checkError(
        dialect,
        await context.ask({ path: context.path(part), key: null, body: dialect.body(context, READY) }),
        [401],
      ),
    "error.request_id": async (context) => checkHeader(await wrongKey(dialect, context), idHeader(dialect), /^\S+$/),
    "error.model": async (context) =>
      checkError(dialect, await early(context, {}), part === "messages" ? [404] : [404, 400]),
    async "error.early"(context) {
      const answer = await early(context, { stream: true });
      checkError(dialect, answer, part === "messages" ? [404] : [404, 400]);
      checkHeader(answer, "content-type", /^application\/json\b/);
    },
    "error.json": async (context) =>
      checkError(dialect, await context.ask({ path: context.path(part), body: '{"model": "' }), [400]),
    "error.member": async (context) =>
      checkError(dialect, await context.ask({ path: context.path(part), body: dialect.incomplete(context) }), [400]),
    async "error.large"(context) {
      const answer = await context.ask({
        path: context.path(part),
        // The model does not exist, so a gateway without a limit generates nothing.
        body: { ...dialect.body(context, "a".repeat(LARGE_BYTES)), model: NO_MODEL },
      });
      if ([400, 404].includes(answer.status)) throw new Skip(`no limit was met: the answer was ${answer.status}`);
      checkError(dialect, answer, [413]);
    },
    async "error.method"(context) {
      const answer = await context.ask({ method: "PUT", path: context.path(part), body: "{}" });
      must(answer.status === 405, { expected: "status 405", seen: answer.status });
      checkHeader(answer, "allow", /\bPOST\b/);
    },
  };
}

/** Sends a short request once, and caches the answer. */
export function wholeOf({ part, body }: CommonForm, context: SuiteContext): Promise<HttpAnswer> {
  return context.once(`${part} whole`, () => context.good({ path: context.path(part), body: body(context, READY) }));
}

/** As `wholeOf`, streamed. */
export function streamOf({ part, body }: CommonForm, context: SuiteContext): ReturnType<SuiteContext["stream"]> {
  return context.once(
    `${part} stream`,
    () => context.stream({ path: context.path(part), body: body(context, READY, streaming(part)) }),
  );
}

/**
 * Checks that each event has an event line equal to the type in its data. @param events the parsed data of the events
 */
export function checkNames(stream: WireStream, events: readonly { type: string }[]): void {
  const named = stream.events.filter(({ data }) => data !== DONE);
  events.forEach(({ type }, index) => {
    const name = named[index]?.name;
    must(name === type, { expected: `event: ${type}`, seen: name });
  });
}

/** Members that request a stream with usage. */
export function streaming(part: SuitePart): JsonObject {
  return { stream: true, ...(part === "chat" && { stream_options: { include_usage: true } }) };
}

function wrongKey({ part, body }: CommonForm, context: SuiteContext): Promise<HttpAnswer> {
  return context.once(
    `${part} wrong key`,
    () => context.ask({ path: context.path(part), key: BAD_KEY, body: body(context, READY) }),
  );
}

/** Checks an error's status and body. */
export function checkError(
  { errors }: Pick<CommonForm, "errors">,
  { status, text }: HttpAnswer,
  statuses: number[],
): void {
  must(statuses.includes(status), { expected: `status ${statuses.join(" or ")}`, seen: `${status}: ${text}` });
  const body = objectOf(text, "the error");
  if (errors === "openai") return void shaped(openaiError, body, "the error");
  const { error } = shaped(anthropicError, body, "the error");
  const types: Record<number, string> = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
  };
  must(error.type === types[status], { expected: `error.type "${types[status]}"`, seen: error.type });
}

/** Checks the format of a header's value. */
export function checkHeader({ header }: HttpAnswer, name: string, form: RegExp): void {
  const value = header(name);
  if (value === null || !form.test(value)) {
    throw new Mismatch(`header ${name} like ${form.source}`, value === null ? "no such header" : show(value));
  }
}

function idHeader({ errors }: Pick<CommonForm, "errors">): string {
  return errors === "openai" ? "x-request-id" : "request-id";
}
