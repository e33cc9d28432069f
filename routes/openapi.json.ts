export { serveOpenapi as GET } from "../lib/openapi/document.ts";
