/** Sends requests of the playground through the gateway's ordinary path, as the holder of a key. */
import type { Access, Endpoint } from "../access/access_table.ts";
import { callerOf } from "../access/authenticate.ts";
import type { Caller } from "../access/permissions.ts";
import { logChange, originOf } from "../admin/changes.ts";
import { findKey } from "../access/key_admin.ts";
import { configuredKeys } from "../access/keys.ts";
import { requireEndpoint, requireProtocol } from "../access/permissions.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { JsonObject } from "../json/mod.ts";
import { createApp } from "../server/app.ts";
import { enterRefusal } from "../server/request_guard.ts";
import type { Handler, Route, RouteContext } from "../server/router.ts";
import type { LoggedChange } from "../store/operators.ts";
import { HANDLERS } from "./playground_handlers.ts";
import { addressOf, ENDPOINT_PATHS, isText, type PlaygroundEndpoint } from "./playground_request.ts";

/** The tag that tells requests of the playground from others in the ledger. */
const TAG = "playground";

/** The sender of a request, and the change that is logged beside its id; absent: none. */
interface Sender {
  caller: Caller;
  change: LoggedChange | undefined;
}

/** Senders of the requests that are being sent. */
const senders = new WeakMap<Request, Sender>();

/** The apps of running gateways: their routes are those of clients, and their callers are chosen, not authenticated. */
const apps = new WeakMap<Gateway, ReturnType<typeof createApp>>();

/**
 * The caller with a key of the store or the configuration. Networks that the key is limited to are those of its holder,
 * and are not checked.
 * @throws {GatewayError} `not_found`, or as `callerOf`
 */
export async function findCaller({ config, store, keys }: Gateway, nameOrId: string): Promise<Caller> {
  const configured = configuredKeys(config).find(({ id, name }) => name === nameOrId || id === nameOrId);
  const record = configured ?? await findKey(store, nameOrId);
  if (record.revokedAt !== undefined) throw new GatewayError("forbidden", "This API key is revoked");
  return callerOf(record, keys);
}

/**
 * Sends a request. Never rejects: failures are responses, as for clients.
 * @param signal aborted: the client has disconnected
 */
export function sendAs(
  caller: Caller,
  { gateway, endpoint, body, signal, change, tag = TAG }: {
    gateway: Gateway;
    endpoint: PlaygroundEndpoint;
    body: JsonObject;
    signal: AbortSignal;
    /** Logged with the id of the request, before it is sent; absent: nothing. */
    change?: LoggedChange;
    /** The tag of the request in the ledger; absent: that of the playground. */
    tag?: string;
  },
): Promise<Response> {
  let app = apps.get(gateway);
  if (app === undefined) apps.set(gateway, app = createPlaygroundApp(gateway));
  const sent = addressOf(endpoint, body);
  const request = new Request(`http://localhost${sent.path}`, {
    method: "POST",
    headers: {
      host: "localhost",
      "content-type": "application/json",
      "anthropic-version": "2023-06-01",
      "x-sluice-tags": tag,
    },
    body: JSON.stringify(sent.body),
    signal,
  });
  senders.set(request, { caller, change });
  return app(request);
}

/** Sends a request of an operator, who is named in the log of changes. */
export function sendFromPlayground(
  caller: Caller,
  { context, endpoint, body, signal }: {
    context: RouteContext;
    endpoint: PlaygroundEndpoint;
    body: JsonObject;
    signal: AbortSignal;
  },
): Promise<Response> {
  const change: LoggedChange = {
    ...originOf(context),
    action: "send_playground_request",
    subject: caller.keyId,
    after: { key: caller.keyName, endpoint, model: String(body.model) },
  };
  return sendAs(caller, { gateway: context.gateway, endpoint, body, signal, change });
}

function createPlaygroundApp(gateway: Gateway): ReturnType<typeof createApp> {
  const endpoints = Object.keys(ENDPOINT_PATHS) as PlaygroundEndpoint[];
  const routes = endpoints.flatMap((endpoint) =>
    routePathsOf(endpoint).map((path): Route => ({ path, handlers: { POST: asCaller(endpoint) } }))
  );
  const access = routes.map(({ path }): [string, Access] => [`POST ${path}`, { credential: "none" }]);
  return createApp({ routes, access: Object.fromEntries(access), gateway: () => gateway });
}

/** The routes of an endpoint. Ids of models may have a slash. */
function routePathsOf(endpoint: PlaygroundEndpoint): readonly string[] {
  return endpoint === "gemini"
    ? ["/v1beta/models/[provider]", "/v1beta/models/[provider]/[model_id]"]
    : [ENDPOINT_PATHS[endpoint]];
}

/** The handler of an endpoint, for the chosen caller: with the permissions of the key, and billed to it. */
function asCaller(endpoint: PlaygroundEndpoint): Handler {
  return async (request, context) => {
    const sender = senders.get(request);
    if (sender === undefined) throw new TypeError("Cannot send a request of the playground without a sender");
    const { caller, change } = sender;
    const { gateway, requestId, record } = context;
    if (change !== undefined) {
      const after = { ...change.after, request_id: `req_${requestId}` };
      await logChange(gateway, { ...change, requestId, after });
    }
    record.keyId = caller.keyId;
    record.keyName = caller.keyName;
    record.group = caller.groupName;
    try {
      if (isText(endpoint)) requireProtocol(caller, endpoint);
      requireEndpoint(caller, endpoint satisfies Endpoint);
    } catch (error) {
      return await enterRefusal(error, { gateway, requestId, record, caller });
    }
    return await HANDLERS[endpoint](request, { ...context, caller });
  };
}
