/** The text pipeline, read from top to bottom: body, prompt, model, rules, context, upstream, answer. */
import { requireCaller } from "../access/caller.ts";
import { requireModel } from "../access/permissions.ts";
import { Dropped } from "../canonical/dropped.ts";
import { Folder } from "../canonical/fold.ts";
import { isLanguageModel } from "../catalog/catalog.ts";
import type { Model, Target } from "../catalog/model.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { RouteContext } from "../http/router.ts";
import { type Json, writeJson } from "../json.ts";
import type { Codec, Echo } from "../protocols/codec.ts";
import { checkBody } from "../protocols/fields.ts";
import type { EventFeed, Upstream } from "../upstreams/upstream.ts";
import { fitContext } from "./context.ts";
import { pump } from "./pump.ts";
import { checkModelRules } from "./rules.ts";

/** Answers one text request in the protocol it came in. */
export async function serve(codec: Codec, request: Request, context: RouteContext): Promise<Response> {
  const { gateway, requestId } = context;
  codec.checkHeaders?.((name) => request.headers.get(name));
  const body = await context.readJson();
  checkBody(codec.schema, body);
  const asked = codec.readPrompt(body);
  const model = findModel(asked.model, context);
  const dropped = new Dropped();
  const { prompt, inputTokens } = await fitContext(checkModelRules(asked, model, dropped), { model, codec });
  const echo: Echo = {
    requestId,
    createdAt: Math.floor(gateway.now() / 1000),
    model: model.id,
    request: body,
    prompt,
  };

  const gone = new AbortController();
  const leave = () => gone.abort();
  request.signal.addEventListener("abort", leave, { once: true });
  try {
    const { upstream, target } = chooseTarget(gateway, model);
    const feed = await upstream.generate({ prompt, model, target, inputTokens, signal: gone.signal, dropped });
    const headers: Record<string, string> = dropped.names.length > 0
      ? { "x-sluice-dropped": dropped.names.join(", ") }
      : {};
    return prompt.stream
      ? await streamed(codec, feed, { echo, headers, keepAliveMs: gateway.config.keep_alive_seconds * 1000 })
      : await whole(codec, feed, { echo, headers });
  } finally {
    // From here on the response's own body tells whether the client is there.
    request.signal.removeEventListener("abort", leave);
  }
}

/** The model a request may use. @throws {GatewayError} `forbidden`, `not_found`, or `invalid` where it makes no text */
export function findModel(id: string, { gateway, caller }: RouteContext): Model {
  requireModel(requireCaller(caller), id);
  const model = gateway.catalog.find(id);
  if (model === undefined) {
    throw new GatewayError("not_found", `Model "${id}" does not exist`, { param: "model", code: "model_not_found" });
  }
  if (!isLanguageModel(model)) {
    throw new GatewayError("invalid", `Model "${id}" does not answer in text`, { param: "model" });
  }
  return model;
}

/** The target that goes first: lowest priority number, then greatest weight. */
function chooseTarget(gateway: Gateway, model: Model): { upstream: Upstream; target: Target } {
  const [target] = model.targets.toSorted((a, b) => a.priority - b.priority || b.weight - a.weight);
  const upstream = target === undefined ? undefined : gateway.upstreams.get(target.upstream);
  if (target === undefined || upstream === undefined) {
    throw new GatewayError("overloaded", `Model "${model.id}" has no upstream that could answer`);
  }
  return { upstream, target };
}

async function whole(
  codec: Codec,
  feed: EventFeed,
  { echo, headers }: { echo: Echo; headers: Record<string, string> },
): Promise<Response> {
  const folder = new Folder();
  try {
    for (let events = await feed.read(); events !== undefined; events = await feed.read()) {
      for (const event of events) folder.push(event);
    }
  } finally {
    feed.cancel();
  }
  return jsonResponse(codec.writeReply(folder.end(), echo), headers);
}

async function streamed(
  codec: Codec,
  feed: EventFeed,
  { echo, headers, keepAliveMs }: { echo: Echo; headers: Record<string, string>; keepAliveMs: number },
): Promise<Response> {
  const body = await pump({ feed, writer: codec.writer(echo), heartbeat: codec.heartbeat, keepAliveMs });
  return new Response(body, {
    headers: {
      ...headers,
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      // Tells nginx and its kin to pass events on as they come.
      "x-accel-buffering": "no",
    },
  });
}

/** A JSON answer. */
export function jsonResponse(body: Json, headers: Record<string, string> = {}): Response {
  return new Response(writeJson(body), { headers: { ...headers, "content-type": "application/json" } });
}
