/**
 * The text pipeline, read from top to bottom: body, prompt, model, rules, limits and budgets, then target by target, then
 * the answer and its charge.
 */
import { Dropped } from "../canonical/dropped.ts";
import { Folder } from "../canonical/fold.ts";
import type { Prompt } from "../canonical/types.ts";
import type { Model, Target } from "../catalog/model.ts";
import { type ErrorKind, GatewayError } from "../errors.ts";
import { describeCause } from "../http/cause.ts";
import type { RouteContext } from "../http/router.ts";
import { type Json, writeJson } from "../json.ts";
import { memberNames } from "../observe/member_names.ts";
import { spliceMembers } from "../json_splice.ts";
import type { Meter } from "../metering/meter.ts";
import { formatUsd } from "../metering/money.ts";
import type { Codec, Echo } from "../protocols/codec.ts";
import { checkBody } from "../protocols/fields.ts";
import { planTargets } from "../routing/plan.ts";
import type { Answer, ClientRequest, EventFeed } from "../upstreams/upstream.ts";
import { fitContext } from "./context.ts";
import { droppedHeader } from "./dropped_header.ts";
import { findModel } from "./find_model.ts";
import { inTime, type Late } from "./late.ts";
import { admit, type Cap } from "./admission.ts";
import { readReplyTokens } from "./billed_tokens.ts";
import { LEFT, type Metered, metered } from "./metered.ts";
import { meteredFeed } from "./metered_feed.ts";
import { pump } from "./pump.ts";
import { checkModelRules } from "./rules.ts";
import { writtenFeed } from "./written_feed.ts";

/** Errors of one target that another target may not have. */
const NEXT_TARGET: ReadonlySet<ErrorKind> = new Set(["upstream", "exhausted", "overloaded", "timeout"]);

/** A request on its way, as every step after the first needs it. */
interface Job {
  codec: Codec;
  context: RouteContext;
  client: ClientRequest;
  model: Model;
  prompt: Prompt;
  meter: Meter;
  /** The most tokens that the budget can pay, where the client named no number itself. */
  cap: Cap | undefined;
  /** Losses that no target can help. */
  dropped: Dropped;
  /** Losses at the target that is being tried. */
  tried: Dropped;
  /** Aborted when the client leaves before there is a response, and when the process ends. */
  signal: AbortSignal;
  interrupted: AbortSignal;
  /** Whether the client has left. To be asked before there is a response. */
  hasLeft: () => boolean;
}

/** Answers one text request in the protocol it came in. */
export function serve(codec: Codec, request: Request, context: RouteContext): Promise<Response> {
  return metered(
    request,
    { context, endpoint: codec.protocol },
    (under) => serveMetered(codec, request, { context, ...under }),
  );
}

async function serveMetered(
  codec: Codec,
  request: Request,
  { context, meter, interrupted }: { context: RouteContext } & Metered,
): Promise<Response> {
  const header = (name: string) => request.headers.get(name);
  codec.checkHeaders?.(header);
  const { value: body, text } = await context.readJson();
  checkBody(codec.schema, body);
  const asked = codec.readPrompt(body);
  const model = findModel(asked.model, context);
  const dropped = new Dropped();
  const checked = checkModelRules(asked, model, dropped);
  const { prompt, cap } = await admit(checked, { meter, model, context });
  const seconds = () => Math.floor(context.gateway.now() / 1000);
  const echo: Echo = {
    requestId: context.requestId,
    createdAt: seconds(),
    completedAt: seconds,
    model: model.id,
    request: cap === undefined ? body : { ...body, [cap.param]: cap.tokens },
    prompt,
  };

  const gone = new AbortController();
  const leave = () => model.on_disconnect === "drain" ? undefined : gone.abort();
  if (request.signal.aborted) leave();
  request.signal.addEventListener("abort", leave, { once: true });
  interrupted.addEventListener("abort", () => gone.abort(interrupted.reason), { once: true });
  try {
    const client = {
      echo,
      text: cap === undefined ? text : spliceMembers(text, { [cap.param]: String(cap.tokens) }),
      header,
    };
    const job: Job = {
      codec,
      context,
      client,
      model,
      prompt,
      meter,
      cap,
      dropped,
      tried: dropped,
      signal: gone.signal,
      interrupted,
      hasLeft: () => request.signal.aborted,
    };
    return prompt.stream ? await inTime(lateOf(job, leave)) : await answer(job);
  } finally {
    // From here on the response's own body tells whether the client is there.
    request.signal.removeEventListener("abort", leave);
  }
}

/** Tries the targets in turn. Until there is a response, the client sees nothing of a target that fails. */
async function answer(job: Job): Promise<Response> {
  const { gateway } = job.context;
  let last: unknown = new GatewayError("overloaded", `Model "${job.model.id}" has no upstream that could answer`);
  for (const target of planTargets(job.model.targets, gateway.random)) {
    try {
      return await answerFrom(target, job);
    } catch (error) {
      // An answer that came and could not be entered in the ledger is not asked for again.
      if (job.signal.aborted || job.meter.ended) throw error;
      if (!(error instanceof GatewayError && NEXT_TARGET.has(error.kind))) throw error;
      last = error;
      const { upstream, model } = target;
      const { kind, message } = error;
      gateway.log({
        level: "warn",
        event: "target_failed",
        request_id: job.context.requestId,
        upstream,
        model,
        kind,
        // Errors of these kinds have words of our own: nothing of a prompt or an answer.
        reason: message,
        ...describeCause(error.cause),
      });
    }
  }
  throw last;
}

async function answerFrom(target: Target, job: Job): Promise<Response> {
  const { codec, context: { gateway, record }, client, model, prompt, meter, signal } = job;
  const upstream = gateway.upstreams.get(target.upstream);
  if (upstream === undefined) throw new GatewayError("overloaded", `Model "${model.id}" has no upstream`);
  const dropped = new Dropped();
  for (const name of job.dropped.names) dropped.add(name);
  job.tried = dropped;
  const fitted = await fitContext(prompt, { model, codec, checkedUpstream: upstream.checksContext });
  meter.attempt(target.upstream);
  record.protocol = upstream.spokenTo?.(prompt.protocol, target);
  const given = await upstream.generate({ ...fitted, client, model, target, signal, dropped });
  record.dropped = memberNames(dropped.names);
  const out: Out = { job, headers: headersOf(job), countInput: fitted.countInput };
  return prompt.stream ? await streamed(given, out) : await whole(given, out);
}

/** What is known of an answer before it begins: what could not be said, and what was set for it. */
function headersOf({ tried, cap }: Job): Record<string, string> {
  return {
    ...droppedHeader(tried),
    ...(cap !== undefined && { "x-sluice-max-tokens": String(cap.tokens) }),
  };
}

interface Out {
  job: Job;
  headers: Record<string, string>;
  /** Size of the prompt in o200k tokens. */
  countInput: () => Promise<number>;
}

/** The charge is entered before the first byte goes out: nothing tells the client of an answer that is not. */
async function whole(given: Answer, { job, headers, countInput }: Out): Promise<Response> {
  const { codec, client, meter } = job;
  if (given.type === "frames") throw new TypeError("Cannot give a stream to a client that asked for none");
  const reply = given.type === "text" ? given.reply : await collect(given.feed);
  meter.first();
  const charged = await readReplyTokens(reply, { countInput });
  const cost = await meter.deliver({
    ...(job.hasLeft() ? { status: LEFT, ending: "abandoned" } : { status: 200, ending: reply.finish }),
    ...charged,
  });
  const costed = { ...headers, "x-sluice-cost": formatUsd(cost) };
  // The client is told what is billed, also where that is not what the upstream told.
  const { tokens, source } = charged;
  if (given.type === "text") {
    return jsonText(source === "upstream" ? given.text : codec.withUsage(given.text, tokens), costed);
  }
  const told = source === "upstream" ? reply : { ...reply, usage: tokens };
  return jsonResponse(codec.writeReply(told, client.echo), costed);
}

async function collect(feed: EventFeed): Promise<ReturnType<Folder["end"]>> {
  const folder = new Folder();
  try {
    for (let events = await feed.read(); events !== undefined; events = await feed.read()) {
      for (const event of events) folder.push(event);
    }
  } finally {
    feed.cancel();
  }
  return folder.end();
}

async function streamed(given: Answer, { job, headers, countInput }: Out): Promise<Response> {
  if (given.type === "text") throw new TypeError("Cannot give a whole answer to a client that asked for a stream");
  const { codec, client, context: { gateway }, meter, model, prompt, interrupted } = job;
  const written = given.type === "frames" ? given.feed : writtenFeed(given.feed, codec.writer(client.echo));
  const { feed, sent, left } = meteredFeed(written, {
    meter,
    afterwork: gateway.afterwork,
    codec,
    countInput,
    wantsUsage: prompt.includeUsage === true,
    hasLeft: job.hasLeft,
    interrupted,
    failed: (error) => gateway.observer.failed(job.context.record, error),
  });
  const drain = model.on_disconnect === "drain";
  const body = await pump({
    feed,
    heartbeat: codec.heartbeat,
    keepAliveMs: keepAliveMs(job.context),
    unread: { ms: gateway.config.limits.answer_unread_ms, say: (error) => written.fail(error) },
    sent,
    left: () => left(drain),
    drain,
  });
  if (!job.hasLeft()) return new Response(body, { headers: streamHeaders(headers) });
  // Nothing of it counts as sent to a client that is not there.
  gateway.afterwork.add(body.cancel());
  return new Response(null, { status: LEFT });
}

/** What becomes of a stream whose targets take longer than a client or a proxy on the way may wait in silence. */
function lateOf(job: Job, leave: () => void): Late {
  const { codec, client, context } = job;
  return {
    response: answer(job),
    heartbeat: codec.heartbeat,
    keepAliveMs: keepAliveMs(context),
    headers: () => streamHeaders(headersOf(job)),
    unanswered: () => context.gateway.afterwork.add(job.meter.fail(LEFT)),
    fail(error) {
      context.gateway.observer.failed(context.record, error);
      context.gateway.afterwork.add(job.meter.fail(200));
      context.gateway.log({
        level: error.kind === "internal" ? "error" : "warn",
        event: "request_failed",
        request_id: context.requestId,
        kind: error.kind,
        ...describeCause(error.cause),
      });
      const writer = codec.writer(client.echo);
      return [...writer.push({ type: "error", error }), ...writer.end()];
    },
    leave,
  };
}

function keepAliveMs({ gateway }: RouteContext): number {
  return gateway.config.keep_alive_seconds * 1000;
}

function streamHeaders(headers: Record<string, string>): Record<string, string> {
  return {
    ...headers,
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    // Tells nginx and its kin to pass events on as they come.
    "x-accel-buffering": "no",
  };
}

/** A JSON answer. */
export function jsonResponse(body: Json, headers: Record<string, string> = {}): Response {
  return jsonText(writeJson(body), headers);
}

function jsonText(text: string, headers: Record<string, string>): Response {
  const body = new TextEncoder().encode(text);
  return new Response(body, {
    headers: { ...headers, "content-type": "application/json", "content-length": String(body.byteLength) },
  });
}
