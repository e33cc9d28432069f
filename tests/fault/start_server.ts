/** The fault server as `sluice fault` starts it. */
import { type FaultServer, type FaultServerOptions, startFaultServer } from "../../lib/fault/server.ts";
import { CLIENT_CODECS } from "../../lib/protocols/client_codecs.ts";

/** Starts a server on a free port of the loopback interface. */
export function startServer(options: Pick<FaultServerOptions, "always" | "onRequest"> = {}): FaultServer {
  return startFaultServer({ hostname: "127.0.0.1", port: 0, codecs: Object.values(CLIENT_CODECS), ...options });
}
