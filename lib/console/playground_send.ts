/** Sends requests of the playground through an app like that of clients, on behalf of a chosen key. */
import type { Access, Endpoint } from "../access/access_table.ts";
import { callerOf } from "../access/authenticate.ts";
import { type Caller, requireEndpoint, requireProtocol } from "../access/permissions.ts";
import { logChange, originOf } from "../admin/changes.ts";
import { findKey } from "../access/key_admin.ts";
import { findConfiguredKey } from "../access/keys.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { JsonObject } from "../json/mod.ts";
import { createApp } from "../server/app.ts";
import { enterRefusal } from "../server/request_guard.ts";
import type { Handler, Route, RouteContext } from "../server/router.ts";
import type { LoggedChange } from "../store/operators.ts";
import { HANDLERS } from "./playground_handlers.ts";
import { addressOf, ENDPOINT_PATHS, isText, type PlaygroundEndpoint } from "./playground_request.ts";

/** Tag that distinguishes requests of the playground in the ledger. */
const PLAYGROUND_TAG = "playground";

interface Sender {
  caller: Caller;
  /** Entry for the log of changes, to which the request's id is added; `undefined`: none. */
  change: LoggedChange | undefined;
}

const senders = new WeakMap<Request, Sender>();

/** Apps by gateway. They have the routes of clients, but the caller is chosen instead of authenticated. */
const apps = new WeakMap<Gateway, ReturnType<typeof createApp>>();

/**
 * Returns the caller that has a key of the store or the configuration. Networks that the key is limited to are not
 * checked: they are about its holder, not about the operator.
 * @throws {GatewayError} `not_found` for an unknown key; `forbidden` for a revoked one; otherwise as `callerOf`
 */
export async function findCaller(gateway: Gateway, nameOrId: string): Promise<Caller> {
  const record = findConfiguredKey(gateway.config, nameOrId) ?? await findKey(gateway, nameOrId);
  if (record.revokedAt !== undefined) throw new GatewayError("forbidden", "This API key is revoked");
  return callerOf(record, gateway.keys);
}

/**
 * Sends a request on behalf of a caller. Never rejects: failures are responses, as for clients.
 * @param options `signal`: aborted when the client disconnects
 */
export function sendAs(
  caller: Caller,
  { gateway, endpoint, body, signal, change, tag = PLAYGROUND_TAG }: {
    gateway: Gateway;
    endpoint: PlaygroundEndpoint;
    body: JsonObject;
    signal: AbortSignal;
    /** Entry for the log of changes, written before the request is sent; absent: none. */
    change?: LoggedChange;
    /** Tag of the request in the ledger; absent: `playground`. */
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

/** Sends a request of an operator on behalf of a caller, and writes that to the log of changes. */
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

/** Returns the paths of an endpoint's routes. Gemini's have the model's id, which may contain a slash. */
function routePathsOf(endpoint: PlaygroundEndpoint): readonly string[] {
  return endpoint === "gemini"
    ? ["/v1beta/models/[provider]", "/v1beta/models/[provider]/[model_id]"]
    : [ENDPOINT_PATHS[endpoint]];
}

/** Makes the handler of an endpoint that serves the chosen caller, with the permissions of its key and billed to it. */
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
