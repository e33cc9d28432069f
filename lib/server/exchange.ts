/** The state of one request and its response (an exchange), and the values that all exchanges of an app share. */
import { ACCESS, type AccessTable } from "../access/access_table.ts";
import type { Gateway } from "../gateway.ts";
import type { ObserveOptions, RequestRecord } from "../observe/request_record.ts";
import { PhaseTimers } from "../phase_timers.ts";
import { type BodyLimits, bodyLimits, type RequestBody } from "./body.ts";
import { BodyBudget } from "./body_budget.ts";
import { createDrain, type Drain } from "./drain.ts";
import { Head } from "./head.ts";
import {
  addressOf,
  type ClientTracker,
  createClientTracker,
  createRatedLog,
  type GuardedRequest,
} from "./client_tracker.ts";
import { createRouteMatcher, type ErrorShape, errorShapeOf, type RouteMatcher } from "./route_matcher.ts";
import { type AnswerHeader, METHODS, type Route } from "./router.ts";
import { checkAccess, routesOn, type Surface } from "./surface.ts";

/** Options of an app. */
export interface AppOptions {
  routes: readonly Route[];
  /** Which of the routes the app serves; absent: all but the admin side. */
  surface?: Surface;
  /** Returns the current gateway. Called once per request. */
  gateway: () => Gateway;
  /** Rows for exactly the methods of `routes`. Absent: the gateway's own table. */
  access?: AccessTable;
  /** Limits of request bodies; absent: those of the gateway's configuration. */
  limits?: BodyLimits;
  /** Returns a new id; absent: those of `createRequestIds`. */
  nextRequestId?: () => string;
  /** Shutdown state of the process; absent: it never shuts down. */
  drain?: Drain;
  /** Absent: new timers, which tick only while one is set. */
  timers?: PhaseTimers;
  /** Shared by all listeners of a process; absent: the app has its own. */
  clients?: ClientTracker;
}

/** Answers a request. Never rejects. Without `info` the client address is unknown. */
export type App = (request: Request, info?: Deno.ServeHandlerInfo) => Promise<Response>;

/** Largest JSON body of an admin request, in bytes. */
const ADMIN_BODY_BYTES = 65_536;

/** Maximum number of log lines per minute about unauthenticated requests that failed. */
const MAX_UNAUTHENTICATED_LOGGED = 600;

/** Methods that appear in the log by name. All others are `other`. */
const KNOWN_METHODS: ReadonlySet<string> = new Set([...METHODS, "HEAD", "OPTIONS", "CONNECT"]);

/** A request and its answer, as far as they are known. */
export interface Exchange extends GuardedRequest {
  readonly head: Head;
  readonly settings: GatewaySettings;
  /** Facts for the log and for metrics. */
  readonly record: RequestRecord;
  /** The vendor whose error format the path has, or the client of a path without a route. */
  errors: ErrorShape;
  /** Called when the body has arrived or is no longer needed. */
  readonly bodyArrived: () => void;
  /** The client's address, if a caller with a valid key asked for it. */
  shownAddress: string | undefined;
  /** Origins whose pages may read the answer; none for operators' routes. */
  origins: readonly string[];
  /** Headers that are added to the response. */
  readonly answerHeaders: AnswerHeader[];
  /** The request's body; undefined until the request is authorized. */
  body: RequestBody | undefined;
  /** Ends the count among the client's concurrent requests; undefined if the request is not counted. */
  endConcurrent: (() => void) | undefined;
}

/** Values that all requests of an app share. */
export interface ServerState {
  /** Returns the current gateway. A reload of the configuration replaces it. */
  readonly gateway: () => Gateway;
  readonly surface: Surface;
  readonly drain: Drain;
  readonly timers: PhaseTimers;
  readonly findRoute: RouteMatcher;
  readonly budget: BodyBudget;
  readonly clients: ClientTracker;
  /** The app itself, once it is created. */
  app?: App;
}

/** Values that all requests under one gateway share. */
export interface GatewaySettings {
  readonly gateway: Gateway;
  /** Options for observing requests. */
  readonly observeOptions: ObserveOptions;
  readonly origins: readonly string[];
  readonly limits: BodyLimits;
  /** Limits for bodies of the admin side, which are small. */
  readonly adminLimits: BodyLimits;
}

/**
 * Creates the values that the exchanges of an app share.
 * @throws {RangeError} if two routes have the same path, or as `checkAccess` does
 */
export function createServerState(options: AppOptions): ServerState {
  const { routes, access = ACCESS, surface = "public", drain = createDrain(), timers = new PhaseTimers() } = options;
  checkAccess(routes, access);
  return {
    gateway: options.gateway,
    surface,
    drain,
    timers,
    findRoute: createRouteMatcher(routesOn(surface, { routes, access }), access),
    budget: new BodyBudget(),
    clients: options.clients ?? createClientTracker({ monotonic: () => options.gateway().monotonic() }),
  };
}

/** Returns a function that creates the settings of a gateway at the first request after a reload, and caches them. */
export function cacheSettings(
  options: AppOptions,
  { surface, budget }: ServerState,
): (gateway: Gateway) => GatewaySettings {
  /** Observers that already count this app's bodies. */
  const observers = new WeakSet<Gateway["observer"]>();
  const logUnauthenticated = createRatedLog({
    monotonic: () => options.gateway().monotonic(),
    limit: MAX_UNAUTHENTICATED_LOGGED,
  });
  let latest: GatewaySettings | undefined;
  return (gateway) => {
    if (latest?.gateway === gateway) return latest;
    const { config, observer, log } = gateway;
    if (!observers.has(observer)) {
      observers.add(observer);
      observer.addBodyBytes(() => budget.usedBytes);
    }
    const limits = options.limits ?? bodyLimits(config);
    return latest = {
      gateway,
      observeOptions: {
        log: (line) => isUnauthenticated(line) ? logUnauthenticated(line, log) : log(line),
        logged: config.log.requests,
        probes: config.log.probes,
      },
      origins: surface === "admin" ? [] : config.cors.origins,
      limits,
      adminLimits: { ...limits, jsonBytes: Math.min(limits.jsonBytes, ADMIN_BODY_BYTES) },
    };
  };
}

/** Begins the exchange of a request that was not checked yet. */
export function beginExchange(
  { request, info, requestId }: Pick<Exchange, "request" | "info" | "requestId">,
  settings: GatewaySettings,
  { drain }: ServerState,
): Exchange {
  const { gateway, observeOptions, origins } = settings;
  const { method } = request;
  const known = KNOWN_METHODS.has(method) ? method : "other";
  const record = gateway.observer.began({ id: requestId, method: known }, observeOptions);
  const head = new Head(request.headers);
  const addressed = { url: request.url, headers: head };
  // Reading `request.body` creates a stream, even if the runtime has the whole body, so the length is read first.
  const hasBody = method !== "GET" && method !== "HEAD" &&
    (head.get("content-length") !== null || request.body !== null);
  const exchange: Exchange = {
    request,
    head,
    info,
    requestId,
    gateway,
    settings,
    record,
    addressed,
    errors: errorShapeOf(addressed),
    bodyArrived: hasBody ? drain.arrive() : doNothing,
    shownAddress: undefined,
    origins,
    answerHeaders: [],
    body: undefined,
    endConcurrent: undefined,
  };
  if (gateway.config.log.client_address) record.address = addressOf(exchange);
  return exchange;
}

function doNothing(): void {}

/** Returns whether a log line is about a failed request without a valid key. Anyone could fill the log with them. */
function isUnauthenticated({ key_id, status }: Parameters<Gateway["log"]>[0]): boolean {
  return key_id === undefined && typeof status === "number" && status >= 400 && status < 500;
}
