/** Shows the body that the first target of a model would receive for a request, as `sluice translate` does. */
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { JsonObject } from "../json/mod.ts";
import { CLIENT_CODECS } from "../protocols/client_codecs.ts";
import { QUIRKS } from "../protocols/quirks/mod.ts";
import { quirkFor } from "../protocols/quirks/quirk.ts";
import { UPSTREAM_CODECS } from "../upstreams/protocols.ts";
import { translateRequest } from "../request/translate_request.ts";
import { addressOf, isText, type PlaygroundEndpoint } from "./playground_request.ts";

/** The body for an upstream, or the reason why there is none. */
export interface ShownTranslation {
  /** The treatment of the request, in one sentence. */
  note: string;
  /** Absent: nothing is translated, or the request would be refused. */
  body?: JsonObject;
  dropped: readonly string[];
}

/** Translates a request for the first target of its model. */
export function showTranslation(
  endpoint: PlaygroundEndpoint,
  { gateway, model: id, body }: { gateway: Gateway; model: string; body: JsonObject },
): ShownTranslation {
  const row = gateway.catalog.find(id);
  const [target] = row?.targets ?? [];
  if (!isText(endpoint)) return { note: "Requests to this endpoint are not translated.", dropped: [] };
  if (row === undefined || target === undefined) return { note: `There is no model "${id}".`, dropped: [] };
  const { upstream: name, model } = target;
  const upstream = gateway.upstreams.get(name);
  const host = gateway.config.upstreams[name];
  const protocol = upstream?.protocolFor?.(endpoint, target);
  if (
    upstream === undefined || host === undefined || host.vendor === "embedded" || protocol === undefined ||
    !isUpstreamProtocol(protocol)
  ) {
    return { note: "The embedded model answers in this process: there is no upstream.", dropped: [] };
  }
  const quirk = quirkFor(QUIRKS[host.vendor], protocol);
  const issuer = upstream.issuerOf(target);
  try {
    const translated = translateRequest({ ...body, model: id }, {
      codec: CLIENT_CODECS[endpoint],
      destinationOf: () => ({ protocol, model, row, issuer, quirk }),
    });
    if (protocol !== endpoint) return { ...translated, note: `Upstream ${name}, in its protocol ${protocol}:` };
    const sent = Object.entries(body).filter(([member]) => !translated.dropped.includes(member));
    const { path, body: passed } = addressOf(endpoint, { ...Object.fromEntries(sent), model });
    return {
      note: passed.model === undefined
        ? `Upstream ${name} speaks the same protocol: the body passes. The path has the upstream's model id: ${path}`
        : `Upstream ${name} speaks the same protocol: the body passes with the upstream's model id.`,
      body: passed,
      dropped: translated.dropped,
    };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { note: `Cannot be translated for upstream ${name}: ${error.message}`, dropped: [] };
  }
}

function isUpstreamProtocol(name: string): name is keyof typeof UPSTREAM_CODECS {
  return Object.hasOwn(UPSTREAM_CODECS, name);
}
