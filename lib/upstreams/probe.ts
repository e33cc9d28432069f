/**
 * Probes an upstream with requests that contain no client data and cost nothing: one for the list of models, and one
 * without a model, which must fail with 400 and not 401.
 */
import type { Secret } from "../secret.ts";
import type { Protocol } from "../protocols/canonical/types.ts";
import { utf8Decoder } from "../text.ts";
import type { AddressGuard } from "./address_guard.ts";
import { createPinnedUrls } from "./pinned_urls.ts";
import { addressOf, type Vendor, type VendorName, vendorOf } from "./vendors.ts";

/** Longest text of an answer that a probe reads, in UTF-16 code units. */
const MAX_TEXT_LENGTH = 64 * 1024;

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
  /** Body of a POST request; absent for a GET request. */
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

/** Returns the request for the list of models. */
export function modelList({ vendor }: Pick<ProbedHost, "vendor">, { key }: { key: boolean }): ProbeRequest {
  if (vendor === "anthropic") return { path: "/v1/models?limit=1000", key };
  return { path: vendor === "gemini" ? "/models?pageSize=1000" : "/models", key };
}

/** Returns a request without a model, so that it cannot cost anything. */
export function emptyRequest({ vendor: name, baseUrl, protocols }: ProbedHost): ProbeRequest {
  const vendor = vendorOf(name);
  const protocol = protocols?.[0] ?? vendor.protocols[0];
  return {
    path: addressOf({ vendor, baseUrl, protocol, model: "sluice-doctor", stream: false }),
    key: true,
    body: "{}",
  };
}

/** Returns whether an answer rejects the key. Google rejects wrong keys with 400. */
function refusesKey({ status, text }: Pick<ProbeReply, "status" | "text">): boolean {
  return status === 401 || (status === 400 && /API[ _]key[ _](not valid|invalid|expired)/i.test(text));
}

/**
 * Returns whether an answer may reject the key. A 403 may mean that, because nothing else in a probe can be forbidden.
 */
export function mayRefuseKey(reply: Pick<ProbeReply, "status" | "text">): boolean {
  return reply.status === 403 || refusesKey(reply);
}

/**
 * Finds out whether an upstream answers, and whether it refuses the key (or requires one if there is none). It requests
 * the list of models. If the list needs no key or is closed to this key, it also sends an empty request. A 403 does not
 * count as a refused key, because keys with few rights may not list models or use every endpoint. Never rejects.
 */
export async function probeHost(host: ProbedHost, signal: AbortSignal): Promise<"up" | "refused" | "down"> {
  const client = Deno.createHttpClient({ http2: false, poolMaxIdlePerHost: 0, allowHost: true });
  const options: ProbeOptions = { client, signal, maxText: MAX_TEXT_LENGTH };
  try {
    const list = await askHost(host, modelList(host, { key: true }), options);
    if (list.status >= 500) return "down";
    if (refusesKey(list)) return "refused";
    // If the list is open to everyone, it proves nothing about the key.
    if (host.key !== undefined && list.status === 200) {
      const { status } = await askHost(host, modelList(host, { key: false }), options);
      if (status !== 200) return "up";
    }
    return refusesKey(await askHost(host, emptyRequest(host), options)) ? "refused" : "up";
  } catch {
    return "down";
  } finally {
    client.close();
  }
}
