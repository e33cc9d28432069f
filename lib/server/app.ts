/** The one function given to the server: a request comes in, a response goes out, nothing is ever thrown. */
import { ACCESS, type AccessTable } from "../access/access_table.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Gateway, LogEntry } from "../gateway.ts";
import type { ObserveOptions } from "../observe/observer.ts";
import type { RequestRecord } from "../observe/request_record.ts";
import { LARGE_BODY_BYTES, yieldToEventLoop } from "../scheduler.ts";
import { anthropicErrorReply, openaiErrorReply } from "../protocols/error_bodies.ts";
import { PhaseTimers } from "../phase_timers.ts";
import { readJsonBody } from "./body.ts";
import { BodyBudget, type BodyLimits, bodyLimits } from "./body_limits.ts";
import { corsHeaders, preflight } from "./cors.ts";
import { addressOf, admit, createSenders, enter, noSuchRoute, type Senders, type Visit } from "./door.ts";
import { createDrain, type Drain, stopping } from "./drain.ts";
import { Head } from "./head.ts";
import { JsonAnswer } from "./json_response.ts";
import { createRatedLog } from "./line_rate.ts";
import { logFailure } from "./log_failure.ts";
import { createPlaces, type Place } from "./places.ts";
import { createRequestIds } from "./request_id.ts";
import { type AnswerHeader, type JsonBody, METHODS, type Route } from "./router.ts";
import { accessKey, routesOn, type Surface } from "./surface.ts";
import { isAnthropicPath, readTarget } from "./target.ts";

/** Header by which a caller asks what the gateway takes for its address: proxies in front are found wrong so. */
const SHOW = "x-sluice-show";

/** Largest JSON body of an admin request, in bytes. */
const ADMIN_BODY_BYTES = 65_536;

/** Lines per minute about requests of nobody that failed. */
const MOST_STRANGERS_LOGGED = 600;

/** Methods that a log names. */
const KNOWN_METHODS: ReadonlySet<string> = new Set([...METHODS, "HEAD", "OPTIONS", "CONNECT"]);

/** What an app is made of. */
export interface AppOptions {
  routes: readonly Route[];
  /** Which of the routes it serves; absent: all but the admin side. */
  surface?: Surface;
  /** The gateway of the moment; asked once per request. */
  gateway: () => Gateway;
  /** Rows for exactly the methods of `routes`. Absent: the gateway's own table. */
  access?: AccessTable;
  /** Absent: those of the gateway's configuration. */
  limits?: BodyLimits;
  nextRequestId?: () => string;
  /** How near its end the server is; absent: it serves for ever. */
  drain?: Drain;
  /** Absent: timers whose timer runs while requests do, and no longer. */
  timers?: PhaseTimers;
  /** Shared by all listeners of a process; absent: the app has its own. */
  senders?: Senders;
}

/** Answers a request. Never rejects. Without `info` nobody knows where it comes from. */
export type App = (request: Request, info?: Deno.ServeHandlerInfo) => Promise<Response>;

/** A request on its way, with what is known of it so far. */
interface Exchange extends Visit {
  readonly head: Head;
  readonly setting: Setting;
  /** What is known of it, for the log and for metrics. */
  readonly record: RequestRecord;
  /** Its place, where that is known before its target is read. */
  readonly place: Place | undefined;
  /** Says that its body is all there. */
  readonly arrived: () => void;
  /** The client's address, where a caller with a good key wants to know what the gateway takes for it. */
  shown: string | undefined;
  /** Origins whose pages may read the answer; none once the request is known to be for the admin side. */
  origins: readonly string[];
  /** Headers of the answer that are known before it is. */
  readonly answerHeaders: AnswerHeader[];
}

/** What is the same for all requests under one gateway. */
interface Setting {
  readonly gateway: Gateway;
  readonly watching: ObserveOptions;
  readonly origins: readonly string[];
  readonly limits: BodyLimits;
  /** Nothing that the admin side takes is large. */
  readonly adminLimits: BodyLimits;
}

/**
 * Builds the app: request id, target, head, route, preflight, upgrade, method, credential, permission, handler.
 * @throws {RangeError} where a method of a route has no row in the access table, or a row has no route
 */
export function createApp(options: AppOptions): App {
  const access = options.access ?? ACCESS;
  checkAccess(options.routes, access);
  const { surface = "public", drain = createDrain(), timers = new PhaseTimers() } = options;
  const places = createPlaces(routesOn(surface, { routes: options.routes, access }), access);
  const budget = new BodyBudget();
  /** Observers that know of this app's bodies. */
  const told = new WeakSet<Gateway["observer"]>();
  const clock = { monotonic: () => options.gateway().monotonic() };
  const senders = options.senders ?? createSenders(clock);
  const strangers = createRatedLog({ ...clock, most: MOST_STRANGERS_LOGGED });
  const nextRequestId = options.nextRequestId ?? createRequestIds();
  let latest: Setting | undefined;

  function settingOf(gateway: Gateway): Setting {
    if (latest?.gateway === gateway) return latest;
    const { config, observer, log } = gateway;
    if (!told.has(observer)) {
      told.add(observer);
      observer.holds(() => budget.usedBytes);
    }
    const limits = options.limits ?? bodyLimits(config);
    return latest = {
      gateway,
      watching: {
        log: (line) => isStranger(line) ? strangers(line, log) : log(line),
        logged: config.log.requests,
        probes: config.log.probes,
      },
      origins: surface === "admin" ? [] : config.cors.origins,
      limits,
      adminLimits: { ...limits, jsonBytes: Math.min(limits.jsonBytes, ADMIN_BODY_BYTES) },
    };
  }

  async function answer(exchange: Exchange): Promise<Response> {
    const { request, head, requestId, gateway, record, setting, arrived } = exchange;
    const { method } = request;
    // Its target is a host and no path, so there is no route whose methods could be named.
    if (method === "CONNECT") {
      throw new GatewayError("method_not_allowed", "Cannot use method CONNECT: this is no proxy", {
        headers: { allow: [...METHODS, "HEAD"].sort().join(", ") },
      });
    }
    const place = exchange.place ?? places.find({ url: request.url, headers: head });
    head.check();
    if (place === undefined) throw noSuchRoute(readTarget({ url: request.url, headers: head }).path);
    if (isElsewhere(place.served.path, { surface, gateway })) throw noSuchRoute();
    const { served: { path, allowed, methods }, params } = place;
    gateway.observer.routed(record, path);
    if (isForOperators(path)) exchange.origins = [];
    const flight = preflight({ method, headers: head }, exchange.origins, allowed);
    if (flight !== undefined) return flight;
    const upgrade = head.get("upgrade");
    if (upgrade !== null && /\bwebsocket\b/i.test(upgrade)) throw noUpgrade();

    const found = methods.get(method);
    if (found === undefined) {
      throw new GatewayError("method_not_allowed", `Cannot use this method here: expected ${allowed.join(", ")}`, {
        headers: { allow: allowed.join(", ") },
      });
    }
    if (drain.phase !== "serving" && turnsAway(drain, path)) throw stopping();
    const { handler, row } = found;
    // Most callers are known at once: a promise is awaited only where there is one.
    const admitted = admit(exchange, { row, senders });
    const caller = admitted instanceof Promise ? await admitted : admitted;
    let leave: (() => void) | undefined;
    if (caller !== undefined) {
      if (head.get(SHOW) === "client-address") exchange.shown = addressOf(exchange);
      leave = enter(exchange, { crowd: senders.crowd, caller });
      record.keyId = caller.keyId;
      record.keyName = caller.keyName;
      record.group = caller.groupName;
    }
    const limits = row?.credential === "admin" ? setting.adminLimits : setting.limits;
    let reading: Promise<JsonBody> | undefined;
    let reserved = 0;
    let answered = false;
    let over = false;
    try {
      const response = await handler(request, {
        gateway,
        requestId,
        record,
        params,
        caller,
        answerHeaders: exchange.answerHeaders,
        timers,
        readJson: () => reading ??= readBody(),
        reserve(bytes) {
          budget.reserve(bytes, limits.budgetBytes);
          reserved += bytes;
          record.bytesIn += bytes;
        },
        arrived,
      });
      answered = true;
      return response;
    } finally {
      // An answer is under way until its last byte is.
      if (leave !== undefined && answered && exchange.info !== undefined) exchange.info.completed.then(leave, leave);
      else leave?.();
      over = true;
      budget.release(reserved);
      // Nobody may be waiting for it any more.
      if (!answered) reading?.catch(() => {});
    }

    async function readBody(): Promise<JsonBody> {
      try {
        const { body, bytes, reservedBytes } = await readJsonBody(request, { headers: head, limits, budget, timers });
        record.bytesIn += bytes;
        if (over) budget.release(reservedBytes);
        else reserved += reservedBytes;
        if (bytes > LARGE_BODY_BYTES) await yieldToEventLoop();
        return body;
      } finally {
        arrived();
      }
    }
  }

  return async (request, info) => {
    const gateway = options.gateway();
    const setting = settingOf(gateway);
    const requestId = nextRequestId();
    const { observer } = gateway;
    const { method } = request;
    const record = observer.began(
      { id: requestId, method: KNOWN_METHODS.has(method) ? method : "other" },
      setting.watching,
    );
    const head = new Head(request.headers);
    const addressed = { url: request.url, headers: head };
    const place = places.known(addressed);
    const native = place === undefined ? isAnthropicPath(addressed) : place.native;
    const arrived = hasBody(request, head) ? drain.arrive() : nothing;
    const answerHeaders: AnswerHeader[] = [];
    const exchange: Exchange = {
      request,
      head,
      info,
      requestId,
      gateway,
      setting,
      record,
      place,
      arrived,
      shown: undefined,
      origins: setting.origins,
      answerHeaders,
    };
    if (gateway.config.log.client_address) record.address = addressOf(exchange);
    const endUse = gateway.uses.begin();
    timers.hold();
    let response: Response;
    try {
      response = await answer(exchange);
    } catch (thrown) {
      // Until a response exists, an aborted signal can only mean that the client has gone.
      if (request.signal.aborted) {
        const error = toGatewayError(thrown);
        // To give up what nobody wants any more is no failure of anybody's.
        if (!isGivenUp(error.cause)) observer.failed(record, error);
        observer.answered(record, 499);
        return new Response(null, { status: 499 });
      }
      response = fail(thrown, exchange, native);
    } finally {
      arrived();
      endUse();
      timers.release();
    }
    response = method === "HEAD" ? withoutBody(response) : observed(response, { record, observer });
    observer.answered(record, response.status);
    answerHeaders.push(["x-request-id", `req_${requestId}`]);
    if (native) answerHeaders.push(["request-id", `req_${requestId}`]);
    if (exchange.origins.length > 0) answerHeaders.push(...corsHeaders(head, exchange.origins));
    if (exchange.shown !== undefined) answerHeaders.push(["x-sluice-client-address", exchange.shown]);
    // Who keeps a connection is asked to open the next one elsewhere.
    if (drain.phase !== "serving") answerHeaders.push(["connection", "close"]);
    return withHeaders(response, answerHeaders);
  };
}

/** To ask for the body itself makes a stream of it, where the runtime has it all. */
function hasBody(request: Request, head: Head): boolean {
  const { method } = request;
  if (method === "GET" || method === "HEAD") return false;
  return head.get("content-length") !== null || request.body !== null;
}

/** Nothing is reachable by oversight, no row outlives its route, and the admin key opens the admin side alone. */
function checkAccess(routes: readonly Route[], access: AccessTable): void {
  const keys = routes.flatMap((route) =>
    METHODS.filter((method) => route.handlers[method] !== undefined).map((method) => accessKey(method, route))
  );
  for (const key of keys) {
    if (!Object.hasOwn(access, key)) throw new RangeError(`Cannot serve "${key}": the access table has no row for it`);
  }
  for (const [key, row] of Object.entries(access)) {
    if (!keys.includes(key)) throw new RangeError(`Cannot use the access row "${key}": there is no such route`);
    if ((row.credential === "admin") !== isAdminPath(key.slice(key.indexOf(" ") + 1))) {
      throw new RangeError(`Cannot use the access row "${key}": the admin key is for /admin, and /admin for it`);
    }
    const isOpen = row.credential === "none" || row.credential === "admin" || row.credential === "metrics";
    if (!isOpen && row.endpoint === undefined) {
      throw new RangeError(`Cannot use the access row "${key}": it names no endpoint`);
    }
  }
}

function nothing(): void {}

function isGivenUp(cause: unknown): boolean {
  return cause instanceof DOMException && cause.name === "AbortError";
}

/** A server that ends is alive, and not ready; at last it takes nothing else. */
function turnsAway({ phase }: Drain, path: string): boolean {
  return path === "/readyz" || phase === "refusing" && path !== "/healthz";
}

function isAdminPath(path: string): boolean {
  return path.startsWith("/admin/");
}

/** No page of a browser reads what is for operators. */
function isForOperators(path: string): boolean {
  return isAdminPath(path) || path === "/metrics";
}

/** Metrics are where the admin side is. */
function isElsewhere(path: string, { surface, gateway }: { surface: Surface; gateway: Gateway }): boolean {
  return path === "/metrics" && surface === "public" && gateway.config.admin?.listen !== undefined;
}

/** A request that anybody can send, so that anybody could fill the log with it. */
function isStranger({ key_id, status }: LogEntry): boolean {
  return key_id === undefined && typeof status === "number" && status >= 400 && status < 500;
}

/** Clients that try a WebSocket first fall back to plain requests when they see this, before any key is looked at. */
function noUpgrade(): GatewayError {
  return new GatewayError("upgrade_required", "Cannot open a WebSocket: this endpoint speaks plain HTTP", {
    headers: { upgrade: "HTTP/1.1", connection: "upgrade" },
  });
}

/** Counts the bytes of the body: by its length where that is known, else as they pass. */
function observed(
  response: Response,
  { record, observer }: { record: RequestRecord } & Pick<Gateway, "observer">,
): Response {
  if (response instanceof JsonAnswer) {
    record.bytesOut = response.byteLength;
    return response;
  }
  const length = response.headers.get("content-length");
  record.streamed = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (length !== null) record.bytesOut = Number(length);
  // To ask for the body makes a stream of it, which costs more than a text: only where it is one.
  else if (record.streamed || record.route.startsWith("/v1/images/")) {
    const { body } = response;
    if (body !== null) return new Response(observer.watch(record, body), response);
  }
  return response;
}

/** The error body of the path's protocol; what went wrong underneath is logged. */
function fail(thrown: unknown, { requestId, gateway, record }: Exchange, native: boolean): Response {
  const error = toGatewayError(thrown);
  gateway.observer.failed(record, error);
  if (error.status >= 500) logFailure(error, { gateway, requestId });
  const reply = native ? anthropicErrorReply(error, requestId) : openaiErrorReply(error, requestId);
  return new JsonAnswer(JSON.stringify(reply.body), {
    status: reply.status,
    headers: { ...reply.headers, "cache-control": "no-store" },
  });
}

/**
 * The answer to `HEAD`: what produces the body is told to stop. The server takes no body for a length of 0, which `GET`
 * would not have, so a length nobody knows is written as an ended stream.
 */
function withoutBody(response: Response): Response {
  const { body, status, headers } = response;
  if (response instanceof JsonAnswer) headers.set("content-length", String(response.byteLength));
  if (body === null) return response;
  body.cancel().catch(() => {});
  return new Response(headers.has("content-length") ? null : new Blob([]).stream(), { status, headers });
}

/** Adds headers in place, or to a copy where the response came from elsewhere and is immutable. */
function withHeaders(response: Response, headers: readonly AnswerHeader[]): Response {
  if (response instanceof JsonAnswer) {
    response.put(headers);
    return response;
  }
  try {
    addHeaders(response.headers, headers);
    return response;
  } catch {
    const copy = new Response(response.body, { status: response.status, headers: response.headers });
    addHeaders(copy.headers, headers);
    return copy;
  }
}

function addHeaders(to: Headers, headers: readonly AnswerHeader[]): void {
  for (const [name, value] of headers) {
    if (name === "vary") to.append(name, value);
    else to.set(name, value);
  }
}
