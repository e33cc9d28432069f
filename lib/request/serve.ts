/**
 * The text pipeline, read from top to bottom: body, prompt, model, rules, limits and budgets, then target by target, then
 * the answer and its charge.
 */
import { requireCaller } from "../access/caller.ts";
import { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import { ReplyAggregator } from "../protocols/canonical/aggregate_events.ts";
import type { Reply } from "../protocols/canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import { GatewayError } from "../errors.ts";
import { describeCause } from "../server/cause.ts";
import { jsonResponse, jsonText } from "../server/json_response.ts";
import type { AnswerHeader, RouteContext } from "../server/router.ts";
import { streamHeaders } from "../server/stream_headers.ts";
import { memberNames } from "../observe/member_names.ts";
import { documentSize, scanMembers, spliceMembers, writeJsonSliced } from "../json/mod.ts";
import { hostedCallsOf } from "../billing/extras.ts";
import type { Meter } from "../billing/meter.ts";
import { formatUsd } from "../billing/money.ts";
import { isEstimated, writeLongParts } from "../billing/parts.ts";
import type { Codec, Echo } from "../protocols/codec.ts";
import { LONG_TEXT_CHARS } from "../scheduler.ts";
import { checkBody } from "../protocols/fields.ts";
import { type Attempt, attemptTargets } from "../routing/retry.ts";
import { classifyFailure } from "../routing/classify_failure.ts";
import type { ProviderPreferences } from "../routing/preferences.ts";
import { readLongCalls } from "../upstreams/long_inputs.ts";
import type { Answer, ClientRequest, EventFeed, FrameFeed } from "../upstreams/upstream.ts";
import { admit, type Admitted } from "./admission.ts";
import { readReplyTokens } from "./billed_tokens.ts";
import { findCandidates } from "./candidates.ts";
import { BETAS, screenExtras, withExtras } from "./extras.ts";
import { ClientWatch } from "./client_watch.ts";
import { fitContext } from "./context.ts";
import { isCountable as countable, type Shown } from "./countable.ts";
import { beginDrain } from "./draining.ts";
import { droppedHeader } from "./dropped_header.ts";
import { inTime, type Late } from "./late.ts";
import { measuredFeed, type Measuring } from "./measured_feed.ts";
import { LEFT, type Metered, metered } from "./metered.ts";
import { meteredFeed } from "./metered_feed.ts";
import { pump } from "./pump.ts";
import type { ReaderWatch } from "./reader_watch.ts";
import { attemptsWith, deadlineMs, headersOfAttempt, planTargets, targetMs } from "./targets.ts";
import { writtenFeed } from "./written_feed.ts";

/** A model that may answer, and the request as it would get it. */
interface Run {
  admitted: Admitted;
  client: ClientRequest;
}

type Runs = readonly [Run, ...Run[]];

/** A request on its way, as every step after the first needs it. */
interface Job {
  codec: Codec;
  context: RouteContext;
  meter: Meter;
  wishes: ProviderPreferences;
  /** Who may answer; the one that is asked first leads. */
  runs: Runs;
  /** The attempt under way, or the last one; absent before the first. */
  attempted: Attempted | undefined;
  /** Given up when the client leaves and its answer is not read to its end, and when the process ends. */
  abort: AbortController;
  interrupted: AbortSignal;
  /** To be asked before there is a response. */
  client: ClientWatch;
  /** Whether the client has left and its answer is read to its end all the same. */
  drains: boolean;
}

/** An attempt, and what its target cannot do about the prompt. */
interface Attempted {
  attempt: Attempt;
  dropped: UnsupportedParameters;
}

/** Answers one text request in the protocol it came in. */
export function serve(codec: Codec, request: Request, context: RouteContext): Promise<Response> {
  return metered(
    request,
    { context, endpoint: codec.protocol },
    (under) => serveMetered(codec, request, { context, under }),
  );
}

async function serveMetered(
  codec: Codec,
  request: Request,
  { context, under }: { context: RouteContext; under: Metered },
): Promise<Response> {
  const { meter, interrupted } = under;
  const header = (name: string) => request.headers.get(name);
  codec.checkHeaders?.(header);
  const asked = await context.readJson();
  checkBody(codec.schema, asked.value);
  const screened = screenExtras(asked, codec, requireCaller(context.caller));
  const { body } = screened;
  const isLong = documentSize(body) > LONG_TEXT_CHARS;
  const texts = isLong ? await codec.writeTexts?.(body.value) : undefined;
  const prompt = withExtras(codec.readPrompt(body.value, texts, screened.permits), screened);
  if (isLong) await writeLongParts(prompt);
  const { wishes, candidates } = findCandidates(prompt, context, screened.dropped);
  const admitting = admit(candidates, { meter, context, isAscii: body.isAscii });
  const [lead, ...others] = admitting instanceof Promise ? await admitting : admitting;
  const seconds = () => Math.floor(context.gateway.now() / 1000);
  const createdAt = seconds();
  const runOf = (admitted: Admitted): Run => {
    const { model, prompt, cap } = admitted;
    const echo: Echo = {
      requestId: context.requestId,
      createdAt,
      completedAt: seconds,
      model: model.id,
      request: cap === undefined ? body.value : { ...body.value, [cap.param]: cap.tokens },
      prompt,
    };
    const betas = screened.betasFor(model, header(BETAS));
    for (const name of betas.dropped) admitted.dropped.add(name);
    const capped = cap === undefined ? body : scanMembers(spliceMembers(body, { [cap.param]: String(cap.tokens) }));
    const passed = (name: string) => name === BETAS ? betas.value : header(name);
    return { admitted, client: { echo, body: capped, header: passed } };
  };

  const runs: Runs = [runOf(lead), ...others.map(runOf)];
  const gone = new AbortController();
  const leave = () => meter.asked && leaves(job, NOTHING) ? undefined : gone.abort();
  const client = new ClientWatch(request, { stream: lead.prompt.stream, timers: context.timers, left: leave });
  interrupted.addEventListener("abort", () => gone.abort(interrupted.reason));
  if (interrupted.aborted) gone.abort(interrupted.reason);
  const job: Job = {
    codec,
    context,
    meter,
    wishes,
    runs,
    attempted: undefined,
    abort: gone,
    interrupted,
    client,
    drains: false,
  };
  try {
    return lead.prompt.stream ? await inTime(lateOf(job, leave)) : await answer(job);
  } catch (thrown) {
    if (job.attempted !== undefined) context.answerHeaders.push(...headersOfAttempt(job.attempted.attempt));
    throw thrown;
  } finally {
    // From here on the response's own body tells whether the client is there.
    client.stop();
  }
}

/** Tries the targets in turn. Until there is a response, the client sees nothing of a target that fails. */
function answer(job: Job): Promise<Response> {
  const { context: { gateway, requestId, caller }, meter, runs, wishes, abort: { signal }, client } = job;
  const key = requireCaller(caller).keyId;
  const choices = planTargets(runs.map(({ admitted }) => admitted), { gateway, wishes, key });
  return attemptTargets(
    attemptsWith(gateway, {
      requestId,
      signal,
      choices,
      key,
      deadlineMs: deadlineMs(choices, gateway),
      ask: (attempt) => answerFrom(attempt, job),
      // An answer that came and could not be entered in the ledger is not asked for again.
      isOver: () => signal.aborted || meter.ended || client.hasLeft,
    }),
  );
}

const NOTHING: Shown = { reasoning: false, input: false };

/**
 * The client has left.
 * @returns true where the answer is read to its end all the same, for as long as its target may take
 */
function leaves(job: Job, shown: Shown): boolean {
  const { attempted, abort, meter, context } = job;
  if (job.drains || attempted === undefined || abort.signal.aborted) return job.drains;
  const { attempt, dropped } = attempted;
  const { model } = attempt;
  const { prompt, sheet } = runWith(model, job).admitted;
  const isCountable = () => countable(prompt, { model, spoken: context.record.protocol, dropped }, shown);
  job.drains = beginDrain({ model, sheet, isCountable, meter }, context);
  if (!job.drains) return false;
  const late = new GatewayError("timeout", "The upstream took too long for a client that has left");
  const timer = context.timers.set(targetMs(attempt, context.gateway.config), () => abort.abort(late));
  void meter.done.then(() => context.timers.clear(timer));
  return true;
}

/** The run of the model that is asked; that of the lead where it is none of them. */
function runWith(model: Model | undefined, { runs }: Job): Run {
  return runs.find(({ admitted }) => admitted.model === model) ?? runs[0];
}

async function answerFrom(attempt: Attempt, job: Job): Promise<Response> {
  const { codec, context: { gateway, record }, meter, abort: { signal } } = job;
  // No other target is asked for a client that left between two attempts.
  if (job.client.hasLeft) job.abort.abort();
  signal.throwIfAborted();
  const { model, target } = attempt;
  const run = runWith(model, job);
  const { admitted: { prompt }, client } = run;
  const upstream = gateway.upstreams.get(target.upstream);
  if (upstream === undefined) throw new GatewayError("overloaded", `Model "${model.id}" has no upstream`);
  const turning = meter.turn(run.admitted);
  if (turning !== undefined) await turned(turning);
  const dropped = new UnsupportedParameters(client.echo);
  for (const name of run.admitted.dropped.names) dropped.add(name);
  const fitting = fitContext(prompt, {
    model,
    codec,
    checkedUpstream: upstream.checksContext,
    // A limit that the gateway set leaves the answer the room there is.
    maxTokens: run.admitted.cap === undefined ? prompt.maxTokens : undefined,
  });
  const fitted = fitting instanceof Promise ? await fitting : fitting;
  job.attempted = { attempt, dropped };
  meter.attempt(target.upstream);
  record.protocol = upstream.spokenTo?.(prompt.protocol, target);
  const { countInput } = fitted;
  // Of a whole answer nobody measures it.
  const begun = prompt.stream ? gateway.monotonic() : 0;
  const given = await upstream.generate({
    prompt: fitted.prompt,
    countInput,
    client,
    model,
    target,
    signal,
    dropped,
  });
  record.dropped = memberNames(dropped.names);
  const out: Out = { job, run, attempt, begun, countInput };
  return prompt.stream ? await streamed(given, out) : await whole(given, out);
}

/** A model in place of another has limits of its own: where they leave no room, the next one may have some. */
async function turned(turning: Promise<void>): Promise<void> {
  try {
    await turning;
  } catch (error) {
    throw error instanceof GatewayError && error.kind === "limited" ? error.with({ fault: "unfit" }) : error;
  }
}

/** Tells the client who was asked last, what could not be said to it, and what was set for it. */
function tellAnswer(job: Job): void {
  const { attempted, context: { answerHeaders } } = job;
  if (attempted !== undefined) answerHeaders.push(...headersOfAttempt(attempted.attempt));
  answerHeaders.push(...changeHeaders(job));
}

/** What could not be said to whoever was asked last, and what was set for it. */
function changeHeaders(job: Job): AnswerHeader[] {
  const { attempted } = job;
  const { cap, dropped } = runWith(attempted?.attempt.model, job).admitted;
  const headers = droppedHeader(attempted?.dropped ?? dropped);
  if (cap !== undefined) headers.push(["x-sluice-max-tokens", String(cap.tokens)]);
  return headers;
}

interface Out {
  job: Job;
  run: Run;
  attempt: Attempt;
  /** When it began, by the clock that only grows. */
  begun: number;
  /** Size of the prompt in o200k tokens. */
  countInput: () => Promise<number>;
}

/** The charge is entered before the first byte goes out: nothing tells the client of an answer that is not. */
async function whole(given: Answer, { job, run, countInput }: Out): Promise<Response> {
  const { client, admitted: { prompt } } = run;
  const { codec, meter, context: { answerHeaders } } = job;
  if (given.type === "frames") throw new TypeError("Cannot give a stream to a client that asked for none");
  const reply = given.type === "text" ? given.reply : await collect(given.feed);
  meter.first();
  const charging = readReplyTokens(reply, {
    countInput,
    isEstimate: () => isEstimated(prompt),
    hostedCalls: hostedCallsOf(prompt),
  });
  const charged = charging instanceof Promise ? await charging : charging;
  const { tokens, source } = charged;
  const hasLeft = job.client.hasLeft;
  const cost = await meter.deliver({
    status: hasLeft ? LEFT : 200,
    ending: hasLeft ? "abandoned" : reply.finish,
    ...charged,
  });
  tellAnswer(job);
  answerHeaders.push(["x-sluice-cost", formatUsd(cost)]);
  // The client is told what is billed, also where that is not what the upstream told.
  if (given.type === "text") return jsonText(source === "upstream" ? given.text : codec.withUsage(given.text, tokens));
  const told = source === "upstream" ? reply : { ...reply, usage: tokens };
  const length = lengthOf(told);
  const read = await readLongCalls(told, codec.protocol);
  const body = codec.writeReply(read, client.echo);
  return length > LONG_TEXT_CHARS ? jsonText(await writeJsonSliced(body)) : jsonResponse(body);
}

/** Characters of what an answer says. */
function lengthOf({ blocks }: Reply): number {
  let length = 0;
  for (const block of blocks) {
    if (block.type === "tool_call") length += block.arguments.length;
    else if ("text" in block) length += block.text.length;
  }
  return length;
}

async function collect(feed: EventFeed): Promise<ReturnType<ReplyAggregator["end"]>> {
  const folder = new ReplyAggregator();
  try {
    for (let events = await feed.read(); events !== undefined; events = await feed.read()) {
      for (const event of events) folder.push(event);
    }
  } finally {
    feed.cancel();
  }
  return folder.end();
}

async function streamed(given: Answer, out: Out): Promise<Response> {
  if (given.type === "text") throw new TypeError("Cannot give a whole answer to a client that asked for a stream");
  const { job, run: { client, admitted: { prompt } }, countInput } = out;
  const { codec, context: { gateway }, meter, interrupted } = job;
  const written = given.type === "frames" ? given.feed : writtenFeed(given.feed, codec.writer(client.echo));
  let reader: ReaderWatch | undefined;
  const blame = (error: unknown) => blameReader(error, reader, out);
  const { feed, sent, left, shown } = meteredFeed(measured(written, { ...out, blame }), {
    meter,
    afterwork: gateway.afterwork,
    codec,
    countInput,
    isEstimate: () => isEstimated(prompt),
    hostedCalls: hostedCallsOf(prompt),
    wantsUsage: prompt.includeUsage === true,
    hasLeft: () => job.client.hasLeft,
    interrupted,
    failed: (error) => gateway.observer.failed(job.context.record, error),
  });
  const body = await pump({
    feed,
    heartbeat: codec.heartbeat,
    keepAliveMs: keepAliveMs(job.context),
    unread: {
      ms: gateway.config.limits.answer_unread_ms,
      say: (error) => written.fail(error),
      watching: (watch) => reader = watch,
    },
    sent,
    left() {
      const drains = leaves(job, shown);
      left(drains);
      return drains;
    },
  });
  if (!job.client.hasLeft) {
    tellAnswer(job);
    return new Response(body, { headers: streamHeaders({}) });
  }
  // Nothing of it counts as sent to a client that is not there.
  gateway.afterwork.add(body.cancel());
  return new Response(null, { status: LEFT });
}

/** A client that held its answer up for this part of the time for all of it, and so many milliseconds, is to blame. */
const BLAMED_SHARE = 0.1;
const BLAMED_MS = 1_000;

/** What an answer ends with whose time was over: the fault of its target, unless the client held it up for long. */
function blameReader(error: unknown, reader: ReaderWatch | undefined, { job, attempt }: Out): unknown {
  if (!(error instanceof GatewayError) || error.fault !== "overtime" || reader === undefined) return error;
  const totalMs = targetMs(attempt, job.context.gateway.config);
  const { heldUpMs } = reader;
  if (heldUpMs < BLAMED_MS || heldUpMs < totalMs * BLAMED_SHARE) return error;
  const message = `Cannot go on with this answer: it was read too slowly to be whole within ${totalMs / 1000} s`;
  return new GatewayError("too_slow", message);
}

/** What its target did is known when the answer is over. */
function measured(
  feed: FrameFeed,
  { job, attempt: { pass }, begun, blame }: Out & Pick<Measuring, "blame">,
): FrameFeed {
  const { context: { gateway: { health, monotonic } }, abort: { signal } } = job;
  return measuredFeed(feed, {
    monotonic,
    blame,
    began: () => health.recordSpeed(pass.target, { firstMs: Math.round(monotonic() - begun) }),
    ended: (tokensPerSecond) => {
      if (tokensPerSecond !== undefined) health.recordSpeed(pass.target, { tokensPerSecond });
    },
    broke: (error) => {
      if (!signal.aborted) health.report(pass, classifyFailure(error).outcome);
    },
  });
}

/** What becomes of a stream whose targets take longer than a client or a proxy on the way may wait in silence. */
function lateOf(job: Job, leave: () => void): Late {
  const { codec, context, runs: [{ client }] } = job;
  return {
    response: answer(job),
    heartbeat: codec.heartbeat,
    keepAliveMs: keepAliveMs(context),
    // Whoever is asked now need not be the one that answers.
    headers: () => streamHeaders(Object.fromEntries(changeHeaders(job))),
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
