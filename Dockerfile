FROM python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS build
# For amd64 and arm64: the base is an index of both, and every locked wheel is there for both.
WORKDIR /src
COPY requirements.lock requirements-build.lock ./
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes --only-binary=:all: -r requirements-build.lock \
    && python -m venv --without-pip /opt/policysched \
    && /opt/build/bin/pip --python /opt/policysched install --no-cache-dir --require-hashes --only-binary=:all: -r requirements.lock
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY policysched policysched
COPY crds crds
COPY examples examples
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /opt/wheels . \
    && /opt/build/bin/pip --python /opt/policysched install --no-cache-dir --no-deps --no-index /opt/wheels/*.whl

FROM python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
COPY --from=build /opt/policysched /opt/policysched
# The Kubernetes client needs a home folder, which a user without a name does not have.
ENV PATH=/opt/policysched/bin:$PATH PYTHONUNBUFFERED=1 HOME=/tmp
USER 65534:65534
WORKDIR /tmp
ENTRYPOINT ["policysched"]
CMD ["run"]
