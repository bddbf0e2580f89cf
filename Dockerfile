FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY policysched policysched
COPY crds crds
RUN pip wheel --no-cache-dir --wheel-dir /wheels .

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links=/wheels policysched && rm -rf /wheels
USER 65534:65534
ENTRYPOINT ["policysched"]
CMD ["run"]
