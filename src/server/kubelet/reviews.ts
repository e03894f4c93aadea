import { subjectAccessReviews, tokenReviews } from '../../api/resources.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { UserInfo } from './user.ts';

/** One permission on this node that a user asks for. */
export interface AccessQuestion {
  user: UserInfo;
  nodeName: string;
  verb: string;
  subresource: string;
}

/** The two questions that a kubelet leaves to its API server. */
export interface Reviews {
  /** Undefined when the token is good for nobody. */
  token(token: string, signal: AbortSignal): Promise<UserInfo | undefined>;
  access(question: AccessQuestion, signal: AbortSignal): Promise<boolean>;
}

/** Asks the home API server. As in the kubelet no audience is named, so that only the server's own are good. */
export const apiServerReviews = (client: KubeClient): Reviews => ({
  async token(token, signal) {
    const review = await client.create(tokenReviews, { metadata: {}, spec: { token } }, { signal });
    const user = review.status?.authenticated === true ? review.status.user : undefined;
    if (user?.username === undefined || user.username === '') return undefined;
    return {
      name: user.username,
      groups: user.groups ?? [],
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      ...(user.extra === undefined ? {} : { extra: user.extra }),
    };
  },

  async access({ user, nodeName, verb, subresource }, signal) {
    const spec = {
      user: user.name,
      groups: user.groups,
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      ...(user.extra === undefined ? {} : { extra: user.extra }),
      resourceAttributes: { verb, version: 'v1', resource: 'nodes', subresource, name: nodeName },
    };
    const review = await client.create(subjectAccessReviews, { metadata: {}, spec }, { signal });
    return review.status?.allowed === true && review.status.denied !== true;
  },
});
