import type { KubeObject } from '../api/wire.ts';
import type { ResourceType } from '../api/resources.ts';
import { TributaryError } from '../lib/errors.ts';
import type { KubeClient } from './client.ts';
import { sharesServer } from './server-news.ts';

/** Their objects are questions, which are made and not stored. */
const QUESTIONS = new Set(['authentication.k8s.io', 'authorization.k8s.io']);

const isQuestion = <T extends KubeObject>({ group }: ResourceType<T>): boolean => QUESTIONS.has(group);

/**
 * The same client, whose writes fail where `check` throws. It is asked at the call, and again whenever the request is about
 * to be sent: between the two a call may wait for a connection, or because the server asks for patience, or the process may
 * be stopped. Reads go on. What was sent before it threw may still arrive.
 */
export function fenced(client: KubeClient, check: () => void): KubeClient {
  const guarded = { guard: check };
  const wrapper: KubeClient = {
    get: async (...args) => client.get(...args),
    list: async (...args) => client.list(...args),
    pages: (...args) => client.pages(...args),
    watch: (...args) => client.watch(...args),
    create: async (type, body, options) => {
      if (isQuestion(type)) return client.create(type, body, options);
      check();
      return client.create(type, body, { ...options, ...guarded });
    },
    replace: async (type, body, options) => {
      check();
      return client.replace(type, body, { ...options, ...guarded });
    },
    patch: async (type, ref, patch, options) => {
      check();
      return client.patch(type, ref, patch, { ...options, ...guarded });
    },
    delete: async (type, ref, options) => {
      check();
      return client.delete(type, ref, { ...options, ...guarded });
    },
    raw: async (request) => {
      if (!['GET', 'HEAD'].includes(request.method)) {
        throw new TributaryError(
          'Invalid',
          `${request.method} ${request.path}: a fenced client reads only in raw requests`,
        );
      }
      return client.raw(request);
    },
    close: async () => client.close(),
  };
  sharesServer(wrapper, client);
  return wrapper;
}
