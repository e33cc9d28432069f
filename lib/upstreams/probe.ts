/**
 * Probes of an upstream that contain no client data and cost nothing: the model list, and a request without a model, which
 * must fail with 400 and not 401.
 */
import type { Secret } from "../secret.ts";
import type { Protocol } from "../protocols/canonical/types.ts";
import { utf8Decoder } from "../text.ts";
import type { AddressGuard } from "./address_guard.ts";
import { createPinnedUrls } from "./pinned_urls.ts";
import { addressOf, type Vendor, type VendorName, vendorOf } from "./vendors.ts";

/** Longest error text that is read, in UTF-16 code units. */
const ERROR_LENGTH = 64 * 1024;

/** The probed upstream. */
export interface ProbedHost {
  vendor: VendorName;
  /** Base URL without a trailing slash. */
  baseUrl: string;
  key: Secret | undefined;
  protocols: readonly Protocol[] | undefined;
  /** Checks resolved addresses. Default: refuses cloud metadata addresses. */
  guard?: AddressGuard | undefined;
}

/** Options of a probe. */
export interface ProbeOptions {
  /** Must allow the `host` header. */
  client: Deno.HttpClient;
  signal: AbortSignal;
  /** Longest text that is read, in UTF-16 code units. */
  maxText: number;
}

/** Request of a probe. */
export interface ProbeRequest {
  path: string;
  /** True to send the key. */
  key: boolean;
  /** Absent: a GET request. */
  body?: string;
}

/** Answer of a probe. */
export interface ProbeReply {
  status: number;
  location: string | null;
  date: string | null;
  text: string;
}

/** Sends one probe. Redirects are not followed, because that would send the key to another host. @throws without an answer */
export async function askHost(
  { vendor, baseUrl, key, guard }: ProbedHost,
  request: ProbeRequest,
  { client, signal, maxText }: ProbeOptions,
): Promise<ProbeReply> {
  const { path, body } = request;
  const { auth }: Vendor = vendorOf(vendor);
  const pinned = await createPinnedUrls({ guard, pins: true }).of(path.startsWith("http") ? path : baseUrl + path);
  const response = await fetch(pinned.url, {
    method: body === undefined ? "GET" : "POST",
    redirect: "manual",
    client,
    signal,
    headers: {
      ...pinned.headers,
      accept: "application/json",
      "user-agent": "sluice",
      ...(vendor === "anthropic" && { "anthropic-version": "2023-06-01" }),
      ...(request.key && key !== undefined && auth(key.reveal())),
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    ...(body !== undefined && { body }),
  });
  const decode = utf8Decoder();
  let text = "";
  for await (const piece of response.body ?? []) {
    text += decode(piece);
    if (text.length > maxText) break;
  }
  const { status, headers } = response;
  return { status, location: headers.get("location"), date: headers.get("date"), text };
}

/** Request for the model list. */
export function modelList({ vendor }: Pick<ProbedHost, "vendor">, { key }: { key: boolean }): ProbeRequest {
  if (vendor === "anthropic") return { path: "/v1/models?limit=1000", key };
  return { path: vendor === "gemini" ? "/models?pageSize=1000" : "/models", key };
}

/** A request without a model: there is nothing to bill. */
export function emptyRequest({ vendor: name, baseUrl, protocols }: ProbedHost): ProbeRequest {
  const vendor = vendorOf(name);
  const protocol = protocols?.[0] ?? vendor.protocols[0];
  return {
    path: addressOf({ vendor, baseUrl, protocol, model: "sluice-doctor", stream: false }),
    key: true,
    body: "{}",
  };
}

/** True if an answer rejects the key. Google rejects wrong keys with 400. */
function refusesKey({ status, text }: Pick<ProbeReply, "status" | "text">): boolean {
  return status === 401 || (status === 400 && /API[ _]key[ _](not valid|invalid|expired)/i.test(text));
}

/** True if an answer may reject the key: for a probe, only the key can be forbidden. */
export function mayRefuseKey(reply: Pick<ProbeReply, "status" | "text">): boolean {
  return reply.status === 403 || refusesKey(reply);
}

/**
 * Finds out whether an upstream answers, and whether it refuses the key, or a request without one: by its list of models, and by an empty request
 * where the list needs no key or is closed to this one. A 403 refuses no key: keys with few rights may not list models,
 * or not use every endpoint. Never rejects.
 */
export async function probeHost(host: ProbedHost, signal: AbortSignal): Promise<"up" | "refused" | "down"> {
  const client = Deno.createHttpClient({ http2: false, poolMaxIdlePerHost: 0, allowHost: true });
  const options: ProbeOptions = { client, signal, maxText: ERROR_LENGTH };
  try {
    const list = await askHost(host, modelList(host, { key: true }), options);
    if (list.status >= 500) return "down";
    if (refusesKey(list)) return "refused";
    // A list without a key proves nothing about requests: some hosts list their models without one.
    if (host.key !== undefined && list.status === 200 && !await isListOpen(host, options)) return "up";
    return refusesKey(await askHost(host, emptyRequest(host), options)) ? "refused" : "up";
  } catch {
    return "down";
  } finally {
    client.close();
  }
}

async function isListOpen(host: ProbedHost, options: ProbeOptions): Promise<boolean> {
  return (await askHost(host, modelList(host, { key: false }), options)).status === 200;
}
