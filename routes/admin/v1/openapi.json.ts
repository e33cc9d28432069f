import { serveAdminDocument } from "../../../lib/admin/document.ts";

export function GET(): Response {
  return serveAdminDocument();
}
